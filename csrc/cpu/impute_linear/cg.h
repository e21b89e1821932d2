// Conjugate gradients on level 0, preconditioned by one V-cycle. Three passes over the image per
// iteration, each walking down the rows so that intermediate rows stay in the first-level cache:
//
//   descend   r -= alpha q;  y = r / D;  restrict O(y), which is the residual of y
//   ascend    y += P(e);  z = (r + O(y)) / D;  r.z, max |z|
//   direct    u += alpha p (of the iteration before);  p = z + beta p;  q = A p;  p.q
//
// With Lanes every scalar is a vector: each system has its own step and stops by itself, bit for
// bit as if it were alone.
#pragma once

#include "cpu/impute_linear/vcycle.h"

namespace rf {
namespace impute {

template <typename Layout>
struct Outcome {
  using Real = typename Layout::Real;
  V<Real> last_correction;  // max |z| of the last cycle, in the units of u
  M<Real> converged;
  M<Real> iterations;
};

template <typename Layout, bool kCustom>
class Solver {
  using Real = typename Layout::Real;
  using Vec = V<Real>;
  using Mask = M<Real>;
  static constexpr int64_t kVec = Layout::kVec;

 public:
  explicit Solver(Grid<Layout>* grid) : grid_(grid), f_(grid->fine) {}

  // Solves for u, which holds known values and 0 at unknown pixels, to an error of about
  // `tolerance`.
  Outcome<Layout> run(Vec tolerance, int max_iterations) {
    start();
    Vec rz, largest;
    precondition<false>(Vec{}, &rz, &largest);

    SmallestEigenvalue<Real> smallest[kSpectra];
    Vec stop = stop_below(smallest, tolerance);
    Outcome<Layout> out;
    out.iterations = Mask{} + 1;
    out.converged = largest <= stop;
    out.last_correction = largest;
    Mask active = ~out.converged;    // still iterating
    Mask finishing = out.converged;  // converged by this very cycle: its z is still to be added
    Vec alpha{}, beta{};
    for (int k = 1; k < max_iterations && any(active); ++k) {
      Vec pq;
      // Without large holes float32 can do without differences. Not with Lanes: there a neighbour's
      // hole would decide.
      if (!Layout::kIsLanes && !grid_->use_coarse) {
        direct<true>(alpha, keep<Real>(active, beta), &pq);
      } else {
        direct<false>(alpha, keep<Real>(active, beta), &pq);
      }
      const Mask stuck = active & ~(pq > Vec{});  // p.q <= 0: rounding has taken over
      active &= ~stuck;
      const Vec step = rz / select<Real>(active, pq, splat<Real>(Real(1)));
      alpha = keep<Real>(active, step) + keep<Real>(finishing, splat<Real>(Real(1)));
      for (int lane = 0; lane < kSpectra; ++lane) {
        if (active[lane]) smallest[lane].add_step(alpha[lane], beta[lane]);
      }
      stop = stop_below(smallest, tolerance);
      const Vec previous = rz;
      precondition<true>(alpha, &rz, &largest);
      out.iterations -= active;  // a true mask is -1
      out.last_correction = select<Real>(active, largest, out.last_correction);
      finishing = active & (largest <= stop);
      out.converged |= finishing;
      active &= ~finishing;
      beta = rz / select<Real>(previous > Vec{}, previous, splat<Real>(Real(1)));
      beta = keep<Real>(previous > Vec{}, beta);
    }
    // The budget is spent: the last correction still helps.
    finish(alpha, keep<Real>(finishing | active, splat<Real>(Real(1))));
    return out;
  }

 private:
  static constexpr int kSpectra = Layout::kSystems;

  static Vec stop_below(const SmallestEigenvalue<Real>* smallest, Vec tolerance) {
    Vec factor;
    for (int lane = 0; lane < kVec; ++lane)
      factor[lane] = smallest[kSpectra == 1 ? 0 : lane].stop_factor();
    return factor * tolerance;
  }
  static bool any(Mask m) {
    bool r = false;
    for (int lane = 0; lane < kVec; ++lane) r |= m[lane] != 0;
    return r;
  }
  const Real* above(const Real* field, int64_t j, const Real* otherwise) const {
    return j > 0 ? field + (j - 1) * f_.stride : otherwise;
  }
  const Real* below(const Real* field, int64_t j, const Real* otherwise) const {
    return j + 1 < f_.h ? field + (j + 1) * f_.stride : otherwise;
  }
  void clear(Real* row) const { memset(row, 0, static_cast<size_t>(f_.n) * sizeof(Real)); }

  // r -= alpha q if kUpdate; z = the preconditioned r.
  template <bool kUpdate>
  void precondition(Vec alpha, Vec* rz, Vec* largest) {
    if (!grid_->use_coarse) return ascend<kUpdate, true, false>(alpha, rz, largest);
    descend<kUpdate>(alpha);
    solve_coarse<Layout, kCustom>(grid_);
    // Lanes that do not need coarse levels got a zero correction; their second step is their own.
    if (any(~(grid_->coarse_on > Vec{}))) {
      ascend<false, true, true>(Vec{}, rz, largest);
    } else {
      ascend<false, false, true>(Vec{}, rz, largest);
    }
  }

  // r = L(u) at unknown pixels; p = 0.
  void start() {
    for (int64_t j = 0; j < f_.h; ++j) {
      Real* r = f_.row(f_.r, j);
      clear(f_.row(f_.p, j));
      if (!f_.row_any[j]) {
        clear(r), clear(f_.row(f_.q, j)), clear(f_.row(f_.z, j));
        continue;
      }
      const Real* mid = f_.row(f_.u, j);
      const int8_t* unknown = f_.unknown_row(j);
      laplacian<Layout, kCustom>(above(f_.u, j, mid), mid, below(f_.u, j, mid), j > 0, j + 1 < f_.h,
                                 f_, [&](int64_t i, Vec l) {
                                   store<Real>(r + i, keep<Real>(load_mask<Real>(unknown + i), l));
                                 });
    }
  }

  // Row j of y = scale r / D (and of r -= alpha q before) into the ring. With kProlong,
  // each_vector(put) calls put(i, extra) along the row with what else y gets where pixels are
  // unknown; r is 0 elsewhere already.
  template <bool kUpdate, bool kScaled, bool kProlong, typename EachVector>
  RF_INLINE void smooth_row(int64_t j, Vec alpha, Vec scale, const EachVector& each_vector) {
    Real* y = f_.ring[j % 3];
    if (!f_.row_any[j]) return clear(y);
    Real* r = f_.row(f_.r, j);
    const Real *q = f_.row(f_.q, j), *inv_diag = f_.inv_diag_row(j);
    const int8_t* unknown = f_.unknown_row(j);
    each_vector([&](int64_t i, Vec extra) {
      Vec v = load(r + i);
      if constexpr (kUpdate) {
        v -= alpha * load(q + i);
        store<Real>(r + i, v);
      }
      v = load(inv_diag + i) * v;
      if constexpr (kScaled) v = v * scale;
      if constexpr (kProlong) v = keep<Real>(load_mask<Real>(unknown + i), v + extra);
      store<Real>(y + i, v);
    });
  }
  // Without anything else to add.
  template <bool kUpdate, bool kScaled>
  RF_INLINE void smooth_row(int64_t j, Vec alpha, Vec scale) {
    smooth_row<kUpdate, kScaled, false>(j, alpha, scale, [&](const auto& put) {
      for (int64_t i = 0; i < f_.n; i += kVec) put(i, Vec{});
    });
  }

  RowTriple<Layout> ring_rows(int64_t j) const {
    return {j > 0 ? f_.ring[(j + 2) % 3] : f_.zeros, f_.ring[j % 3],
            j + 1 < f_.h ? f_.ring[(j + 1) % 3] : f_.zeros};
  }

  template <bool kUpdate>
  void descend(Vec alpha) {
    const Level<Layout>& coarser = grid_->level[1];
    const Vec scale = splat<Real>(f_.restrict_scale) * grid_->coarse_on;
    smooth_row<kUpdate, false>(0, alpha, Vec{});
    int64_t coarse_row = 0;
    for (int64_t j = 0; j < f_.h; ++j) {
      if (j + 1 < f_.h) smooth_row<kUpdate, false>(j + 1, alpha, Vec{});
      Real* out = f_.residual_ring[j & 3];
      if (!f_.row_any[j]) {
        clear(out);
      } else {
        const RowTriple<Layout> t = ring_rows(j);
        const int8_t* unknown = f_.unknown_row(j);
        neighbour_sum<Layout, kCustom>(
            t.up, t.mid, t.down, f_.n, f_.weights, f_.centre_row(j), [&](int64_t i, Vec o) {
              store<Real>(out + i, keep<Real>(load_mask<Real>(unknown + i), o));
            });
      }
      if (j + 1 == f_.h || (j >= 2 && j % 2 == 0)) {
        for (; coarse_row < coarser.h && (j + 1 == f_.h || 2 * coarse_row + 2 <= j); ++coarse_row) {
          const Real* rows[4];
          restriction_rows<Real>(
              coarse_row, f_.h, f_.zeros, [&](int64_t k) { return f_.residual_ring[k & 3]; }, rows);
          restrict_row<Layout>(coarser, coarse_row, rows, f_.n, scale);
        }
      }
    }
  }

  template <bool kUpdate, bool kScaled, bool kProlong>
  void ascend(Vec alpha, Vec* rz, Vec* largest) {
    Vec dot{}, top{};
    const Vec scale =
        select<Real>(grid_->coarse_on > Vec{}, splat<Real>(Real(1)), grid_->second_step);
    const auto prepare = [&](int64_t j) {
      if constexpr (!kProlong) {
        smooth_row<kUpdate, kScaled>(j, alpha, scale);
      } else {
        const Level<Layout>& c = grid_->level[1];
        const int64_t near_j = j / 2;
        int64_t far_j = j % 2 ? near_j + 1 : near_j - 1;
        if (far_j < 0 || far_j >= c.h) far_j = near_j;
        smooth_row<kUpdate, kScaled, true>(j, alpha, scale, [&](const auto& put) {
          prolong_row<Layout>(c, c.row(c.y, near_j), c.row(c.y, far_j), f_.n, put);
        });
      }
    };
    prepare(0);
    for (int64_t j = 0; j < f_.h; ++j) {
      if (j + 1 < f_.h) prepare(j + 1);
      if (!f_.row_any[j]) continue;
      const RowTriple<Layout> t = ring_rows(j);
      const Real *r = f_.row(f_.r, j), *inv_diag = f_.inv_diag_row(j);
      const int8_t* unknown = f_.unknown_row(j);
      Real* z = f_.row(f_.z, j);
      Vec row_dot{};
      neighbour_sum<Layout, kCustom>(
          t.up, t.mid, t.down, f_.n, f_.weights, f_.centre_row(j), [&](int64_t i, Vec o) {
            const Vec v = load(r + i);
            const Vec x = keep<Real>(load_mask<Real>(unknown + i), load(inv_diag + i) * (v + o));
            store<Real>(z + i, x);
            row_dot += v * x;
            top = vmax<Real>(top, vabs<Real>(x));
          });
      dot += row_dot;
    }
    *rz = Layout::sum(dot);
    *largest = Layout::max(top);
  }

  template <bool kPlain>
  void direct(Vec alpha, Vec beta, Vec* pq) {
    const auto advance = [&](int64_t j) {
      if (!f_.row_any[j]) return;
      Real *u = f_.row(f_.u, j), *p = f_.row(f_.p, j);
      const Real* z = f_.row(f_.z, j);
      for (int64_t i = 0; i < f_.n; i += kVec) {
        const Vec old = load(p + i);
        store<Real>(u + i, load(u + i) + alpha * old);
        store<Real>(p + i, load(z + i) + beta * old);
      }
    };
    Vec dot{};
    advance(0);
    for (int64_t j = 0; j < f_.h; ++j) {
      if (j + 1 < f_.h) advance(j + 1);
      if (!f_.row_any[j]) continue;
      const Real* mid = f_.row(f_.p, j);
      Real* q = f_.row(f_.q, j);
      const int8_t* unknown = f_.unknown_row(j);
      Vec row_dot{};
      const auto finish_row = [&](int64_t i, Vec l) {
        const Vec x = keep<Real>(load_mask<Real>(unknown + i), l);
        store<Real>(q + i, x);
        row_dot += load(mid + i) * x;
      };
      if constexpr (kPlain) {
        const Real* diag = f_.diag_row(j);
        neighbour_sum<Layout, kCustom>(
            above(f_.p, j, f_.zeros), mid, below(f_.p, j, f_.zeros), f_.n, f_.weights, f_.zeros,
            [&](int64_t i, Vec o) { finish_row(i, load(diag + i) * load(mid + i) - o); });
      } else {
        laplacian<Layout, kCustom>(above(f_.p, j, mid), mid, below(f_.p, j, mid), j > 0,
                                   j + 1 < f_.h, f_, [&](int64_t i, Vec l) { finish_row(i, -l); });
      }
      dot += row_dot;
    }
    *pq = Layout::sum(dot);
  }

  void finish(Vec alpha, Vec last) {
    for (int64_t j = 0; j < f_.h; ++j) {
      if (!f_.row_any[j]) continue;
      Real* u = f_.row(f_.u, j);
      const Real *p = f_.row(f_.p, j), *z = f_.row(f_.z, j);
      for (int64_t i = 0; i < f_.n; i += kVec) {
        store<Real>(u + i, (load(u + i) + alpha * load(p + i)) + last * load(z + i));
      }
    }
  }

  Grid<Layout>* grid_;
  const Fine<Layout>& f_;
};

}  // namespace impute
}  // namespace rf
