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
  // `tolerance`; only the systems of `wanted`.
  void run(Mask wanted, Vec tolerance, int max_iterations, Outcome<Layout>* out) {
    start();
    Vec rz, largest;
    precondition(Vec{}, &rz, &largest);

    SmallestEigenvalue<Real> smallest[kSpectra];
    Vec stop = stop_below(smallest, tolerance);
    Mask finishing = wanted & (largest <= stop);  // converged by this very cycle: z is to be added
    Mask active = wanted & ~finishing;            // still iterating
    out->iterations = wanted ? Mask{} + 1 : out->iterations;
    out->converged = wanted ? finishing : out->converged;
    out->last_correction = select<Real>(wanted, largest, out->last_correction);
    Vec alpha{}, beta{};
    for (int k = 1; k < max_iterations && any(active); ++k) {
      Vec pq;
      direct(alpha, keep<Real>(active, beta), &pq);
      const Mask stuck = active & ~(pq > Vec{});  // p.q <= 0: rounding has taken over
      active &= ~stuck;
      const Vec step = rz / select<Real>(active, pq, splat<Real>(Real(1)));
      alpha = keep<Real>(active, step) + keep<Real>(finishing, splat<Real>(Real(1)));
      for (int lane = 0; lane < kSpectra; ++lane) {
        if (active[lane]) smallest[lane].add_step(alpha[lane], beta[lane]);
      }
      stop = stop_below(smallest, tolerance);
      const Vec previous = rz;
      precondition(alpha, &rz, &largest);
      out->iterations -= active;  // a true mask is -1
      out->last_correction = select<Real>(active, largest, out->last_correction);
      finishing = active & (largest <= stop);
      out->converged |= finishing;
      active &= ~finishing;
      beta = rz / select<Real>(previous > Vec{}, previous, splat<Real>(Real(1)));
      beta = keep<Real>(previous > Vec{}, beta);
    }
    // The budget is spent: the last correction still helps.
    finish(alpha, keep<Real>(finishing | active, splat<Real>(Real(1))));
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
  // Makes a row of a ring ready for the spans of row j: 0 everywhere else.
  void clear_around(int64_t j, Real* row) const { clear_gaps<Layout>(f_.spans, j, f_.n, row); }
  template <typename Body>
  RF_INLINE void each_span(int64_t j, const Body& body) const {
    rf::impute::each_span<Layout>(f_.spans, j, f_.n, body);
  }

  // r -= alpha q; z = the preconditioned r.
  void precondition(Vec alpha, Vec* rz, Vec* largest) {
    descend(alpha);
    solve_coarse<Layout, kCustom>(grid_);
    ascend(rz, largest);
  }

  // r = L(u) at unknown pixels; p = q = 0.
  void start() {
    for (int64_t j = 0; j < f_.h; ++j) {
      Real *r = f_.row(f_.r, j), *p = f_.row(f_.p, j), *q = f_.row(f_.q, j);
      const Real* mid = f_.row(f_.u, j);
      const int8_t* unknown = f_.unknown_row(j);
      each_span(j, [&](Span span) {
        laplacian<Layout, kCustom>(above(f_.u, j, mid), mid, below(f_.u, j, mid), j > 0,
                                   j + 1 < f_.h, span, f_, [&](int64_t i, Vec l) {
                                     store<Real>(p + i, Vec{});
                                     store<Real>(q + i, Vec{});
                                     store<Real>(r + i,
                                                 keep<Real>(load_mask<Real>(unknown + i), l));
                                   });
      });
    }
  }

  RowTriple<Layout> ring_rows(int64_t j) const {
    return {j > 0 ? f_.ring[(j + 2) % 3] : f_.zeros, f_.ring[j % 3],
            j + 1 < f_.h ? f_.ring[(j + 1) % 3] : f_.zeros};
  }

  void descend(Vec alpha) {
    const Level<Layout>& coarser = grid_->level[1];
    const Vec scale = splat<Real>(f_.restrict_scale);
    const auto smooth = [&](int64_t j) {
      Real *y = f_.ring[j % 3], *r = f_.row(f_.r, j);
      const Real *q = f_.row(f_.q, j), *inv_diag = f_.inv_diag_row(j);
      clear_around(j, y);
      each_span(j, [&](Span span) {
        for (int64_t i = span.begin; i < span.end; i += kVec) {
          const Vec v = load(r + i) - alpha * load(q + i);
          store<Real>(r + i, v);
          store<Real>(y + i, load(inv_diag + i) * v);
        }
      });
    };
    smooth(0);
    int64_t coarse_row = 0;
    for (int64_t j = 0; j < f_.h; ++j) {
      if (j + 1 < f_.h) smooth(j + 1);
      Real* out = f_.residual_ring[j & 3];
      clear_around(j, out);
      const RowTriple<Layout> t = ring_rows(j);
      const int8_t* unknown = f_.unknown_row(j);
      each_span(j, [&](Span span) {
        neighbour_sum<Layout, kCustom>(
            t.up, t.mid, t.down, span, f_.n, f_.weights, f_.centre_row(j), [&](int64_t i, Vec o) {
              store<Real>(out + i, keep<Real>(load_mask<Real>(unknown + i), o));
            });
      });
      if (j + 1 == f_.h || (j >= 2 && j % 2 == 0)) {
        for (; coarse_row < coarser.h && (j + 1 == f_.h || 2 * coarse_row + 2 <= j); ++coarse_row) {
          const Real* rows[4];
          restriction_rows<Real>(
              coarse_row, f_.h, f_.zeros, [&](int64_t k) { return f_.residual_ring[k & 3]; }, rows);
          rf::impute::each_span<Layout>(coarser.spans, coarse_row, coarser.n, [&](Span span) {
            restrict_row<Layout>(coarser, coarse_row, span, rows, f_.n, scale);
          });
        }
      }
    }
  }

  void ascend(Vec* rz, Vec* largest) {
    Vec dot{}, top{};
    const auto prepare = [&](int64_t j) {
      Real* y = f_.ring[j % 3];
      clear_around(j, y);
      const Level<Layout>& c = grid_->level[1];
      const int64_t near_j = j / 2;
      int64_t far_j = j % 2 ? near_j + 1 : near_j - 1;
      if (far_j < 0 || far_j >= c.h) far_j = near_j;
      const Real *r = f_.row(f_.r, j), *inv_diag = f_.inv_diag_row(j);
      const int8_t* unknown = f_.unknown_row(j);
      each_span(j, [&](Span span) {
        prolong_row<Layout>(c, c.row(c.y, near_j), c.row(c.y, far_j), span, [&](int64_t i, Vec e) {
          const Vec v = load(inv_diag + i) * load(r + i);
          store<Real>(y + i, keep<Real>(load_mask<Real>(unknown + i), v + e));
        });
      });
    };
    prepare(0);
    for (int64_t j = 0; j < f_.h; ++j) {
      if (j + 1 < f_.h) prepare(j + 1);
      if (!f_.row_any(j)) continue;
      const RowTriple<Layout> t = ring_rows(j);
      const Real *r = f_.row(f_.r, j), *inv_diag = f_.inv_diag_row(j);
      const int8_t* unknown = f_.unknown_row(j);
      Real* z = f_.row(f_.z, j);
      Vec row_dot{};
      each_span(j, [&](Span span) {
        neighbour_sum<Layout, kCustom>(
            t.up, t.mid, t.down, span, f_.n, f_.weights, f_.centre_row(j), [&](int64_t i, Vec o) {
              const Vec v = load(r + i);
              const Vec x = keep<Real>(load_mask<Real>(unknown + i), load(inv_diag + i) * (v + o));
              store<Real>(z + i, x);
              row_dot += v * x;
              top = vmax<Real>(top, vabs<Real>(x));
            });
      });
      dot += row_dot;
    }
    *rz = Layout::sum(dot);
    *largest = Layout::max(top);
  }

  void direct(Vec alpha, Vec beta, Vec* pq) {
    const auto advance = [&](int64_t j) {
      Real *u = f_.row(f_.u, j), *p = f_.row(f_.p, j);
      const Real* z = f_.row(f_.z, j);
      each_span(j, [&](Span span) {
        for (int64_t i = span.begin; i < span.end; i += kVec) {
          const Vec old = load(p + i);
          store<Real>(u + i, load(u + i) + alpha * old);
          store<Real>(p + i, load(z + i) + beta * old);
        }
      });
    };
    Vec dot{};
    advance(0);
    for (int64_t j = 0; j < f_.h; ++j) {
      if (j + 1 < f_.h) advance(j + 1);
      if (!f_.row_any(j)) continue;
      const Real* mid = f_.row(f_.p, j);
      Real* q = f_.row(f_.q, j);
      const int8_t* unknown = f_.unknown_row(j);
      Vec row_dot{};
      const auto finish_row = [&](int64_t i, Vec l) {
        const Vec x = keep<Real>(load_mask<Real>(unknown + i), l);
        store<Real>(q + i, x);
        row_dot += load(mid + i) * x;
      };
      each_span(j, [&](Span span) {
        laplacian<Layout, kCustom>(above(f_.p, j, mid), mid, below(f_.p, j, mid), j > 0,
                                   j + 1 < f_.h, span, f_,
                                   [&](int64_t i, Vec l) { finish_row(i, -l); });
      });
      dot += row_dot;
    }
    *pq = Layout::sum(dot);
  }

  void finish(Vec alpha, Vec last) {
    for (int64_t j = 0; j < f_.h; ++j) {
      Real* u = f_.row(f_.u, j);
      const Real *p = f_.row(f_.p, j), *z = f_.row(f_.z, j);
      each_span(j, [&](Span span) {
        for (int64_t i = span.begin; i < span.end; i += kVec) {
          store<Real>(u + i, (load(u + i) + alpha * load(p + i)) + last * load(z + i));
        }
      });
    }
  }

  Grid<Layout>* grid_;
  const Fine<Layout>& f_;
};

}  // namespace impute
}  // namespace rf
