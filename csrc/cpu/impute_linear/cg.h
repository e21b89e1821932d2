// Conjugate gradients on level 0, preconditioned by one V-cycle. Three passes over the image per
// iteration, each walking down the rows so that intermediate rows stay in the first-level cache:
//
//   descend   r -= alpha q;  y = r / D;  restrict O(y), which is the residual of y
//   ascend    y += P(e);  z = (r + O(y)) / D;  r.z, max |z|
//   direct    u += alpha p (of the iteration before);  p = z + beta p;  q = A p;  p.q
//
// The first descent makes r = L(u) instead, and the first direction is z.
//
// q takes the place of z row by row, as z is needed no more: less memory is less to wait for.
// Threads that share an image do a pass band by band.
//
// With Lanes every scalar is a vector: each system has its own step and stops by itself, bit for
// bit as if it were alone.
#pragma once

#include <algorithm>
#include <cstring>

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
  explicit Solver(const Grid<Layout>* grid) : grid_(grid), f_(grid->fine) {}

  // Solves for u, which holds known values and 0 at unknown pixels, to an error of about
  // `tolerance`; only the systems of `wanted`.
  void run(Mask wanted, Vec tolerance, int max_iterations, Outcome<Layout>* out) {
    Vec rz, largest;
    precondition<true>(Vec{}, &rz, &largest);

    SmallestEigenvalue<Real> smallest[kSpectra];
    Vec stop = stop_below(smallest, tolerance);
    Mask finishing = wanted & (largest <= stop);  // converged by this very cycle: z is to be added
    Mask active = wanted & ~finishing;            // still iterating
    out->iterations = wanted ? Mask{} + 1 : out->iterations;
    out->converged = wanted ? finishing : out->converged;
    out->last_correction = select<Real>(wanted, largest, out->last_correction);
    Vec alpha{}, beta{};
    bool directed = false;
    for (int k = 1; k < max_iterations && any(active); ++k) {
      Vec pq;
      if (directed) {
        direct<false>(alpha, keep<Real>(active, beta), &pq);
      } else {
        direct<true>(alpha, beta, &pq);
      }
      directed = true;
      const Mask stuck = active & ~(pq > Vec{});  // p.q <= 0: rounding has taken over
      active &= ~stuck;
      const Vec step = rz / select<Real>(active, pq, splat<Real>(Real(1)));
      alpha = keep<Real>(active, step) + keep<Real>(finishing, splat<Real>(Real(1)));
      for (int lane = 0; lane < kSpectra; ++lane) {
        if (active[lane]) smallest[lane].add_step(alpha[lane], beta[lane]);
      }
      stop = stop_below(smallest, tolerance);
      const Vec previous = rz;
      precondition<false>(alpha, &rz, &largest);
      out->iterations -= active;  // a true mask is -1
      out->last_correction = select<Real>(active, largest, out->last_correction);
      finishing = active & (largest <= stop);
      out->converged |= finishing;
      active &= ~finishing;
      beta = rz / select<Real>(previous > Vec{}, previous, splat<Real>(Real(1)));
      beta = keep<Real>(previous > Vec{}, beta);
    }
    // The budget is spent: the last correction still helps.
    const Vec last = keep<Real>(finishing | active, splat<Real>(Real(1)));
    if (directed) {
      finish<true>(alpha, last);
    } else {
      finish<false>(alpha, last);
    }
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
  // Makes a row of a ring ready for the spans of row j: 0 everywhere else.
  void clear_around(int64_t j, Real* row) const { clear_gaps<Layout>(f_.spans, j, f_.n, row); }
  template <typename Body>
  RF_INLINE void each_span(int64_t j, const Body& body) const {
    rf::impute::each_span<Layout>(f_.spans, j, f_.n, body);
  }

  // r -= alpha q; z = the preconditioned r.
  template <bool kFirst>
  void precondition(Vec alpha, Vec* rz, Vec* largest) {
    each_band([&](int64_t band, int thread) { descend_band<kFirst>(band, thread, alpha); });
    solve_coarse<Layout, kCustom>(*grid_);
    ascend(rz, largest);
  }

  // pass(band, thread) for the bands of the image.
  template <typename Pass>
  void each_band(const Pass& pass) const {
    if (f_.bands == 1) {
      pass(int64_t{0}, 0);
      return;
    }
    parallel_for(
        f_.bands, 1,
        [&](int64_t begin, int64_t end, int thread) {
          for (int64_t band = begin; band < end; ++band) pass(band, thread);
        },
        grid_->team.threads);
  }
  // For the neighbours of a band: `rows` rows at both its ends.
  template <typename Saved>
  void save_ends(int64_t band, const Real* field, int64_t rows, const Saved& saved) const {
    const auto save = [&](int64_t border, int64_t begin) {
      if (border == 0 || border == f_.bands) return;
      for (int64_t j = begin; j < begin + rows; ++j) {
        memcpy(saved(border, j), field + j * f_.stride, static_cast<size_t>(f_.n) * sizeof(Real));
      }
    };
    save(band, f_.band_begin(band));
    save(band + 1, f_.band_end(band) - rows);
  }
  void save_r(int64_t band) const {
    save_ends(band, f_.r, 2, [&](int64_t b, int64_t j) { return f_.saved_r_row(b, j); });
  }

  // What a pass has added up.
  void total(Vec* sum, Vec* largest) const {
    Vec dot{}, top{};
    for (int64_t j = 0; j < f_.h; ++j) {
      dot += load(f_.row_total(j));
      top = max_of(top, load(f_.row_total(j) + kVec));
    }
    *sum = Layout::sum(dot);
    *largest = Layout::max(top);
  }

  // Three rows that move down the image: where the one below the current row goes, and the three
  // for row j, zeros beyond the border.
  struct MovingRows {
    Real *up, *mid, *down;
    explicit MovingRows(Real* const* ring) : up(ring[0]), mid(ring[1]), down(ring[2]) {}
    void move() {
      Real* const last = up;
      up = mid, mid = down, down = last;
    }
  };
  RowTriple<Layout> rows_at(const MovingRows& rows, int64_t j) const {
    return {j > 0 ? rows.up : f_.zeros, rows.mid, j + 1 < f_.h ? rows.down : f_.zeros};
  }

  // Writes the coarse rows of the band, for which it
  // needs the residual one row and y two rows beyond it.
  template <bool kFirst>
  void descend_band(int64_t band, int thread, const Vec& alpha_in) const {
    const Vec alpha = alpha_in;
    const Rings<Real>& rings = f_.rings[thread];
    const Level<Layout>& coarser = grid_->level[1];
    const Vec scale = splat<Real>(f_.restrict_scale);
    const int64_t band_begin = f_.band_begin(band), band_end = f_.band_end(band);
    // A band changes its own rows of r, and saved ones
    // of its neighbours, which nobody else looks at.
    const auto smooth = [&](int64_t j, Real* y) {
      Real* r = f_.row(f_.r, j);
      if (j < band_begin) r = f_.saved_r_row(band, j);
      if (j >= band_end) r = f_.saved_r_row(band + 1, j);
      const Real* inv_diag = f_.inv_diag_row(j);
      const auto put = [&](int64_t i, Vec v) {
        store<Real>(r + i, v);
        store<Real>(y + i, load(inv_diag + i) * v);
      };
      clear_around(j, y);
      if constexpr (kFirst) {
        const Real* mid = f_.row(f_.u, j);
        const Real *up = j > 0 ? mid - f_.stride : mid,
                   *down = j + 1 < f_.h ? mid + f_.stride : mid;
        const int8_t* unknown = f_.unknown_row(j);
        each_span(j, [&](Span span) {
          laplacian<Layout, kCustom>(
              up, mid, down, j > 0, j + 1 < f_.h, span, f_,
              [&](int64_t i, Vec l) { put(i, keep<Real>(load_mask<Real>(unknown + i), l)); });
        });
      } else {
        const Real* q = f_.row(f_.z, j);
        each_span(j, [&](Span span) {
          for (int64_t i = span.begin; i < span.end; i += kVec)
            put(i, load(r + i) - alpha * load(q + i));
        });
      }
    };
    const int64_t begin = std::max<int64_t>(0, band_begin - 1), end = std::min(f_.h, band_end + 1);
    int64_t coarse_row = band_begin / 2;
    const int64_t coarse_end = std::min(coarser.h, (band_end + 1) / 2);
    MovingRows ys(rings.smooth);
    for (int64_t j = std::max<int64_t>(begin - 2, -1); j < end; ++j, ys.move()) {
      if (j + 1 < f_.h) smooth(j + 1, ys.down);
      if (j < begin) continue;
      Real* out = rings.residual[j & 3];
      clear_around(j, out);
      const RowTriple<Layout> t = rows_at(ys, j);
      const int8_t* unknown = f_.unknown_row(j);
      each_span(j, [&](Span span) {
        neighbour_sum<Layout, kCustom>(
            t.up, t.mid, t.down, span, f_.n, f_.weights, f_.centre_row(j), [&](int64_t i, Vec o) {
              store<Real>(out + i, keep<Real>(load_mask<Real>(unknown + i), o));
            });
      });
      for (; coarse_row < coarse_end && (j + 1 == f_.h || 2 * coarse_row + 2 <= j); ++coarse_row) {
        const Real* rows[4];
        restriction_rows<Real>(
            coarse_row, f_.h, f_.zeros, [&](int64_t k) { return rings.residual[k & 3]; }, rows);
        rf::impute::each_span<Layout>(coarser.spans, coarse_row, coarser.n, [&](Span span) {
          restrict_row<Layout>(coarser, coarse_row, span, rows, f_.n, scale);
        });
      }
    }
  }

  void ascend(Vec* rz, Vec* largest) {
    each_band([&](int64_t band, int thread) { ascend_band(band, thread); });
    total(rz, largest);
  }
  void ascend_band(int64_t band, int thread) const {
    const auto prepare = [&](int64_t j, Real* y) {
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
    const int64_t begin = f_.band_begin(band), end = f_.band_end(band);
    MovingRows ys(f_.rings[thread].smooth);
    for (int64_t j = std::max<int64_t>(begin - 2, -1); j < end; ++j, ys.move()) {
      if (j + 1 < f_.h) prepare(j + 1, ys.down);
      if (j < begin) continue;
      const RowTriple<Layout> t = rows_at(ys, j);
      const Real *r = f_.row(f_.r, j), *inv_diag = f_.inv_diag_row(j);
      const int8_t* unknown = f_.unknown_row(j);
      Real* z = f_.row(f_.z, j);
      Vec dot{}, top{};
      each_span(j, [&](Span span) {
        neighbour_sum<Layout, kCustom>(
            t.up, t.mid, t.down, span, f_.n, f_.weights, f_.centre_row(j), [&](int64_t i, Vec o) {
              const Vec v = load(r + i);
              const Vec x = keep<Real>(load_mask<Real>(unknown + i), load(inv_diag + i) * (v + o));
              store<Real>(z + i, x);
              dot += v * x;
              top = max_of(top, abs_of(x));
            });
      });
      store<Real>(f_.row_total(j), dot);
      store<Real>(f_.row_total(j) + kVec, top);
    }
    save_ends(band, f_.p, 1, [&](int64_t b, int64_t j) { return f_.saved_p_row(b, j); });
    save_ends(band, f_.z, 1, [&](int64_t b, int64_t j) { return f_.saved_z_row(b, j); });
  }

  template <bool kFirst>
  void direct(Vec alpha, Vec beta, Vec* pq) {
    each_band([&](int64_t band, int) { direct_band<kFirst>(band, alpha, beta); });
    Vec none;
    total(pq, &none);
  }
  template <bool kFirst>
  void direct_band(int64_t band, const Vec& alpha_in, const Vec& beta_in) const {
    const Vec alpha = alpha_in, beta = beta_in;
    const auto advance = [&](int64_t j) {
      Real *u = f_.row(f_.u, j), *p = f_.row(f_.p, j);
      const Real* z = f_.row(f_.z, j);
      each_span(j, [&](Span span) {
        for (int64_t i = span.begin; i < span.end; i += kVec) {
          if constexpr (kFirst) {
            store<Real>(p + i, load(z + i));
            continue;
          }
          const Vec old = load(p + i);
          store<Real>(u + i, load(u + i) + alpha * old);
          store<Real>(p + i, load(z + i) + beta * old);
        }
      });
    };
    const auto advance_saved = [&](int64_t border, int64_t j) {
      Real* p = f_.saved_p_row(border, j);
      const Real* z = f_.saved_z_row(border, j);
      each_span(j, [&](Span span) {
        for (int64_t i = span.begin; i < span.end; i += kVec)
          store<Real>(p + i, kFirst ? load(z + i) : load(z + i) + beta * load(p + i));
      });
    };
    const int64_t begin = f_.band_begin(band), end = f_.band_end(band);
    if (begin > 0) advance_saved(band, begin - 1);
    if (end < f_.h) advance_saved(band + 1, end);
    for (int64_t j = begin - 1; j < end; ++j) {
      if (j + 1 < end) advance(j + 1);
      if (j < begin) continue;
      const Real* mid = f_.row(f_.p, j);
      const Real *up = mid - f_.stride, *down = mid + f_.stride;
      if (j == begin) up = j > 0 ? f_.saved_p_row(band, j - 1) : mid;
      if (j + 1 == end) down = end < f_.h ? f_.saved_p_row(band + 1, end) : mid;
      Real* q = f_.row(f_.z, j);
      const int8_t* unknown = f_.unknown_row(j);
      Vec dot{};
      const auto finish_row = [&](int64_t i, Vec l) {
        const Vec x = keep<Real>(load_mask<Real>(unknown + i), l);
        store<Real>(q + i, x);
        dot += load(mid + i) * x;
      };
      each_span(j, [&](Span span) {
        laplacian<Layout, kCustom>(up, mid, down, j > 0, j + 1 < f_.h, span, f_,
                                   [&](int64_t i, Vec l) { finish_row(i, -l); });
      });
      store<Real>(f_.row_total(j), dot);
      store<Real>(f_.row_total(j) + kVec, Vec{});
    }
    save_r(band);
  }

  template <bool kDirected>
  void finish(Vec alpha, Vec last) {
    each_band([&](int64_t band, int) { finish_band<kDirected>(band, alpha, last); });
  }
  template <bool kDirected>
  void finish_band(int64_t band, const Vec& alpha, const Vec& last) const {
    for (int64_t j = f_.band_begin(band); j < f_.band_end(band); ++j) {
      Real* u = f_.row(f_.u, j);
      const Real *p = f_.row(f_.p, j), *z = f_.row(f_.z, j);
      each_span(j, [&](Span span) {
        for (int64_t i = span.begin; i < span.end; i += kVec) {
          const Vec so_far = kDirected ? load(u + i) + alpha * load(p + i) : load(u + i);
          store<Real>(u + i, so_far + last * load(z + i));
        }
      });
    }
  }

  const Grid<Layout>* grid_;
  const Fine<Layout>& f_;
};

}  // namespace impute
}  // namespace rf
