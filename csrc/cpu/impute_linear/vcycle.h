// The V-cycle below level 0: an approximate solve of the coarse equations for the residual in
// level[1].r, left in level[1].y. Two Jacobi sweeps down, two up, so that it is symmetric and
// conjugate gradients may use it.
#pragma once

#include "cpu/impute_linear/stencil.h"

namespace rf {
namespace impute {

template <typename Layout>
struct RowTriple {
  const typename Layout::Real *up, *mid, *down;
};

template <typename Layout>
RF_INLINE RowTriple<Layout> rows_around(const Level<Layout>& c, const typename Layout::Real* field,
                                        int64_t j, const typename Layout::Real* zeros) {
  const auto* mid = field + j * c.stride;
  return {j > 0 ? mid - c.stride : zeros, mid, j + 1 < c.h ? mid + c.stride : zeros};
}

// Rows [begin, end) of out = inv_diag * (add + O(src)), without add if not kAdd.
template <typename Layout, bool kCustom, bool kAdd>
void jacobi_rows(const Level<Layout>& c, const typename Layout::Real* src,
                 const typename Layout::Real* add, typename Layout::Real* out,
                 const typename Layout::Real* zeros, int64_t begin, int64_t end) {
  using Real = typename Layout::Real;
  for (int64_t j = begin; j < end; ++j) {
    const RowTriple<Layout> t = rows_around(c, src, j, zeros);
    const Real *inv_diag = c.row(c.inv_diag, j), *centre = kCustom ? c.row(c.centre, j) : nullptr;
    [[maybe_unused]] const Real* a_row = add + j * c.stride;
    Real* o_row = out + j * c.stride;
    each_span<Layout>(c.spans, j, c.n, [&](Span span) {
      neighbour_sum<Layout, kCustom>(t.up, t.mid, t.down, span, c.n, c.weights, centre,
                                     [&](int64_t i, V<Real> o) {
                                       if constexpr (kAdd) o += load(a_row + i);
                                       store<Real>(o_row + i, load(inv_diag + i) * o);
                                     });
    });
  }
}
template <typename Layout, bool kCustom, bool kAdd>
void jacobi_sweep(const Grid<Layout>& grid, const Level<Layout>& c,
                  const typename Layout::Real* src, typename Layout::Real* out) {
  grid.team.rows(c.h, c.n, [&](int64_t begin, int64_t end, int) {
    jacobi_rows<Layout, kCustom, kAdd>(c, src, c.r, out, grid.zeros, begin, end);
  });
}

// Rows [begin, end) of level l + 1: the residual of level
// l, which is O(b) where cells are unknown, restricted.
template <typename Layout, bool kCustom>
void restrict_rows(const Grid<Layout>& grid, int l, int64_t begin, int64_t end, int thread) {
  using Real = typename Layout::Real;
  const Level<Layout>&c = grid.level[l], &coarser = grid.level[l + 1];
  Real* const* const ring = grid.fine.rings[thread].residual;
  int64_t next = std::max<int64_t>(0, 2 * begin - 1);  // row of the residual
  for (int64_t coarse_row = begin; coarse_row < end; ++coarse_row) {
    const int64_t need = std::min(2 * coarse_row + 3, c.h);
    for (; next < need; ++next) {
      const RowTriple<Layout> t = rows_around(c, c.b, next, grid.zeros);
      const Real *inv_diag = c.row(c.inv_diag, next),
                 *centre = kCustom ? c.row(c.centre, next) : nullptr;
      Real* out = ring[next & 3];
      clear_gaps<Layout>(c.spans, next, c.n, out);
      each_span<Layout>(c.spans, next, c.n, [&](Span span) {
        neighbour_sum<Layout, kCustom>(
            t.up, t.mid, t.down, span, c.n, c.weights, centre, [&](int64_t i, V<Real> o) {
              store<Real>(out + i, keep<Real>(load(inv_diag + i) > V<Real>{}, o));
            });
      });
    }
    const Real* f[4];
    restriction_rows<Real>(coarse_row, c.h, grid.zeros, [&](int64_t j) { return ring[j & 3]; }, f);
    each_span<Layout>(coarser.spans, coarse_row, coarser.n, [&](Span span) {
      restrict_row<Layout>(coarser, coarse_row, span, f, c.n, splat<Real>(c.restrict_scale));
    });
  }
}

// Down: y = a = inv_diag r is there already; b = inv_diag O(a); the residual of a + b is O(b).
template <typename Layout, bool kCustom>
void smooth_down(const Grid<Layout>& grid, int l) {
  const Level<Layout>&c = grid.level[l], &coarser = grid.level[l + 1];
  jacobi_sweep<Layout, kCustom, false>(grid, c, c.y, c.b);
  grid.team.rows(coarser.h, c.n, [&](int64_t begin, int64_t end, int thread) {
    restrict_rows<Layout, kCustom>(grid, l, begin, end, thread);
  });
}

// Rows [begin, end) of y = a + b + P(e), where unknown.
template <typename Layout>
void correct_rows(const Level<Layout>& c, const Level<Layout>& coarser, int64_t begin,
                  int64_t end) {
  using Real = typename Layout::Real;
  for (int64_t j = begin; j < end; ++j) {
    const int64_t near_j = j / 2;
    int64_t far_j = j % 2 ? near_j + 1 : near_j - 1;
    if (far_j < 0 || far_j >= coarser.h) far_j = near_j;
    Real *y = c.row(c.y, j), *b = c.row(c.b, j), *inv_diag = c.row(c.inv_diag, j);
    each_span<Layout>(c.spans, j, c.n, [&](Span span) {
      prolong_row<Layout>(coarser, coarser.row(coarser.y, near_j), coarser.row(coarser.y, far_j),
                          span, [&](int64_t i, V<Real> e) {
                            store<Real>(y + i, (load(y + i) + load(b + i)) +
                                                   keep<Real>(load(inv_diag + i) > V<Real>{}, e));
                          });
    });
  }
}

// Up: y = a + b + P(e), then two sweeps.
template <typename Layout, bool kCustom>
void smooth_up(const Grid<Layout>& grid, int l) {
  const Level<Layout>& c = grid.level[l];
  grid.team.rows(c.h, c.n, [&](int64_t begin, int64_t end, int) {
    correct_rows<Layout>(c, grid.level[l + 1], begin, end);
  });
  jacobi_sweep<Layout, kCustom, true>(grid, c, c.y, c.b);
  jacobi_sweep<Layout, kCustom, true>(grid, c, c.b, c.y);
}

template <typename Layout, bool kCustom>
void solve_coarse(const Grid<Layout>& grid) {
  using Real = typename Layout::Real;
  const int last = grid.plan->levels - 1;
  for (int l = 1; l < last; ++l) smooth_down<Layout, kCustom>(grid, l);
  // 1 x 1. The damping of the smoother has no place in an exact solve.
  const Level<Layout>& one = grid.level[last];
  store<Real>(one.y, load(one.inv_diag) * load(one.r) *
                         splat<Real>(static_cast<Real>(1 + grid.plan->centre)));
  for (int l = last - 1; l >= 1; --l) smooth_up<Layout, kCustom>(grid, l);
}

}  // namespace impute
}  // namespace rf
