// Row kernels: the nine-point stencil, and the transfers between a level and the next coarser one.
// All of them walk along a row of vectors and hand each result to `body(i, value)`, i the element
// offset. Shifted values are made from the vectors at hand instead of unaligned loads: a load that
// spans two stores still in flight stalls.
#pragma once

#include "cpu/impute_linear/grid.h"

namespace rf {
namespace impute {

// Calls body(span) for the spans of row j, which has n elements. Lanes hold different masks, which
// seldom share a gap: their rows are whole or empty.
template <typename Layout, typename Body>
RF_INLINE void each_span(const Spans& spans, int64_t j, int64_t n, const Body& body) {
  if constexpr (Layout::kIsLanes) {
    if (spans.count[j] > 0) body(Span{0, static_cast<int32_t>(n)});
  } else {
    for (const Span* span = spans.begin(j); span != spans.end(j); ++span) body(*span);
  }
}

// Sets a row to 0 wherever it has no span.
template <typename Layout>
RF_INLINE void clear_gaps(const Spans& spans, int64_t j, int64_t n, typename Layout::Real* row) {
  using Real = typename Layout::Real;
  int64_t i = 0;
  each_span<Layout>(spans, j, n, [&](Span span) {
    for (; i < span.begin; i += Layout::kVec) store<Real>(row + i, V<Real>{});
    i = span.end;
  });
  for (; i < n; i += Layout::kVec) store<Real>(row + i, V<Real>{});
}

// O(y) = weighted sum of the eight neighbours, zero
// outside. `up` and `down` are rows of zeros at the border.
template <typename Layout, bool kCustom, typename Body>
RF_INLINE void neighbour_sum(const typename Layout::Real* up, const typename Layout::Real* mid,
                             const typename Layout::Real* down, Span span, int64_t n,
                             const StencilWeights<typename Layout::Real>& s,
                             const typename Layout::Real* centre, const Body& body) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  if constexpr (!kCustom) {
    // Column sums c = up + 2 mid + down; then O = c(left) + c(right) + 2 (up + down).
    const V<Real> two = splat<Real>(s.two);
    const auto column = [&](int64_t i, V<Real>* vertical) {
      *vertical = load(up + i) + load(down + i);
      return *vertical + two * load(mid + i);
    };
    V<Real> before{}, vertical, next_vertical;
    if (span.begin > 0) before = column(span.begin - kVec, &vertical);
    V<Real> here = column(span.begin, &vertical);
    int64_t i = span.begin;
    V<Real> meeting = Layout::meet(before, here);
    for (; i + kVec < span.end; i += kVec) {
      const V<Real> after = column(i + kVec, &next_vertical), next = Layout::meet(here, after);
      body(i, (Layout::left(before, meeting, here) + Layout::right(here, next, after)) +
                  two * vertical);
      before = here, here = after, vertical = next_vertical, meeting = next;
    }
    const V<Real> after = span.end < n ? column(i + kVec, &next_vertical) : V<Real>{};
    body(i, (Layout::left(before, meeting, here) +
             Layout::right(here, Layout::meet(here, after), after)) +
                two * vertical);
  } else {
    // What a pixel gives to its right neighbour and to its left one differ when the diagonals do.
    const V<Real> ex = splat<Real>(s.edge_x), ey = splat<Real>(s.edge_y),
                  dm = splat<Real>(s.diag_main), da = splat<Real>(s.diag_anti);
    V<Real> before{};
    if (span.begin > 0) {
      const int64_t i = span.begin - kVec;
      before = dm * load(up + i) + ex * load(mid + i) + da * load(down + i);
    }
    V<Real> u = load(up + span.begin), m = load(mid + span.begin), d = load(down + span.begin);
    V<Real> rightward = dm * u + ex * m + da * d, leftward = da * u + ex * m + dm * d;
    for (int64_t i = span.begin; i < span.end; i += kVec) {
      V<Real> un{}, mn{}, dn{};
      if (i + kVec < n)
        un = load(up + i + kVec), mn = load(mid + i + kVec), dn = load(down + i + kVec);
      const V<Real> next_rightward = dm * un + ex * mn + da * dn,
                    next_leftward = da * un + ex * mn + dm * dn;
      body(i, (Layout::left(before, rightward) + Layout::right(leftward, next_leftward)) +
                  (ey * (u + d) + load(centre + i) * m));
      before = rightward, rightward = next_rightward, leftward = next_leftward;
      u = un, m = mn, d = dn;
    }
  }
}

// L(u) = weighted sum of (neighbour - u) over the neighbours inside the image, built from
// differences so that float32 does not lose them among large values. At the border `up` or `down`
// is the row itself.
template <typename Layout, bool kCustom, typename Body>
RF_INLINE void laplacian(const typename Layout::Real* up, const typename Layout::Real* mid,
                         const typename Layout::Real* down, bool has_up, bool has_down, Span span,
                         const Fine<Layout>& f, const Body& body) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  const int64_t n = f.n;
  const Real cy = static_cast<Real>(has_up) + static_cast<Real>(has_down);
  const StencilWeights<Real>& s = f.weights;
  const V<Real> ex_left =
      splat<Real>(kCustom ? s.edge_x + s.diag_main * Real(has_up) + s.diag_anti * Real(has_down)
                          : Real(2) + cy);
  const V<Real> ex_right =
      splat<Real>(kCustom ? s.edge_x + s.diag_anti * Real(has_up) + s.diag_main * Real(has_down)
                          : Real(2) + cy);
  const V<Real> ey = splat<Real>(s.edge_y), dm = splat<Real>(s.diag_main),
                da = splat<Real>(s.diag_anti);

  int64_t i = span.begin;
  V<Real> before{}, g_before{};  // g: given to the right neighbour, k: to the left one
  if (i > 0) {
    before = load(mid + i - kVec);
    const V<Real> up_before = load(up + i - kVec) - before,
                  down_before = load(down + i - kVec) - before;
    g_before = kCustom ? dm * up_before + da * down_before : up_before + down_before;
  }
  V<Real> here = load(mid + i), d_up = load(up + i) - here, d_down = load(down + i) - here;
  V<Real> g = kCustom ? dm * d_up + da * d_down : d_up + d_down;
  V<Real> k = kCustom ? da * d_up + dm * d_down : g;
  V<Real> meeting = Layout::meet(before, here), g_meeting = Layout::meet(g_before, g);
  const auto step = [&](int64_t i, V<Real> after, V<Real> k_after, V<Real> g_after) {
    const V<Real> next = Layout::meet(here, after);
    const V<Real> to_left = Layout::left(before, meeting, here) - here,
                  to_right = Layout::right(here, next, after) - here;
    meeting = next;
    V<Real> diagonals;
    if constexpr (kCustom) {
      diagonals = Layout::left(g_before, g) + Layout::right(k, k_after);
    } else {
      const V<Real> g_next = Layout::meet(g, g_after);
      diagonals = Layout::left(g_before, g_meeting, g) + Layout::right(g, g_next, g_after);
      g_meeting = g_next;
    }
    if constexpr (kCustom) {
      body(i, (diagonals + ey * (d_up + d_down)) + (ex_left * (load(f.has_left + i) * to_left) +
                                                    ex_right * (load(f.has_right + i) * to_right)));
    } else {
      body(i, (diagonals + (g + g)) +
                  ex_left * (load(f.has_left + i) * to_left + load(f.has_right + i) * to_right));
    }
  };
  const int64_t last = span.end < n ? span.end : n - kVec;
  for (; i < last; i += kVec) {
    const V<Real> after = load(mid + i + kVec);
    const V<Real> up_after = load(up + i + kVec) - after,
                  down_after = load(down + i + kVec) - after;
    const V<Real> g_after = kCustom ? dm * up_after + da * down_after : up_after + down_after;
    const V<Real> k_after = kCustom ? da * up_after + dm * down_after : g_after;
    step(i, after, k_after, g_after);
    before = here, here = after, g_before = g, g = g_after, k = k_after, d_up = up_after,
    d_down = down_after;
  }
  if (span.end == n) step(i, V<Real>{}, V<Real>{}, V<Real>{});
}

// A row of the prolongation, cell-centred bilinear: `near` is the coarse
// row that contains the fine row, `far` the one beyond the nearer edge
// (`near` again at the border). The span is one of the fine row.
template <typename Layout, typename Body>
RF_INLINE void prolong_row(const Level<Layout>& c, const typename Layout::Real* near_row,
                           const typename Layout::Real* far_row, Span span, const Body& body) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  const V<Real> quarter = splat<Real>(Real(0.25)), most = splat<Real>(Real(0.75));
  const auto mix = [&](int64_t i) {
    return most * load(near_row + i) + quarter * load(far_row + i);
  };
  const int64_t begin = span.begin / 2;
  V<Real> before = begin > 0 ? mix(begin - kVec) : V<Real>{}, here = mix(begin);
  for (int64_t i = begin; 2 * i < span.end; i += kVec) {
    const V<Real> after = i + kVec < c.n ? mix(i + kVec) : V<Real>{};
    const V<Real> even = load(c.even + i) * here + quarter * Layout::left(before, here);
    const V<Real> odd = load(c.odd + i) * here + quarter * Layout::right(here, after);
    V<Real> a, b;
    Layout::join(even, odd, &a, &b);
    body(2 * i, a);
    if (2 * i + kVec < span.end) body(2 * i + kVec, b);
    before = here, here = after;
  }
}

// Coarse row J of the restriction, the transpose of the above, from fine rows 2J-1 .. 2J+2,
// replicated at the border; and the first Jacobi step there, y = inv_diag r, while r is at hand.
template <typename Layout>
RF_INLINE void restrict_row(const Level<Layout>& c, int64_t coarse_row, Span span,
                            const typename Layout::Real* const f[4], int64_t fine_n,
                            V<typename Layout::Real> scale) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  Real *r = c.row(c.r, coarse_row), *y = c.row(c.y, coarse_row);
  const Real* inv_diag = c.row(c.inv_diag, coarse_row);
  const V<Real> quarter = splat<Real>(Real(0.25)), near_w = splat<Real>(Real(0.75)) * scale,
                far_w = quarter * scale;
  const auto column = [&](int64_t i) {
    return near_w * (load(f[1] + i) + load(f[2] + i)) + far_w * (load(f[0] + i) + load(f[3] + i));
  };
  const auto pair = [&](int64_t i, V<Real>* even, V<Real>* odd) {
    Layout::split(column(2 * i), 2 * i + kVec < fine_n ? column(2 * i + kVec) : V<Real>{}, even,
                  odd);
  };
  V<Real> odd_before{}, even, odd;
  if (span.begin > 0) pair(span.begin - kVec, &even, &odd_before);
  pair(span.begin, &even, &odd);
  for (int64_t i = span.begin; i < span.end; i += kVec) {
    V<Real> even_after{}, odd_after{};
    if (i + kVec < c.n) pair(i + kVec, &even_after, &odd_after);
    const V<Real> v = load(c.even + i) * even + load(c.odd + i) * odd +
                      quarter * (Layout::left(odd_before, odd) + Layout::right(even, even_after));
    store<Real>(r + i, v);
    store<Real>(y + i, load(inv_diag + i) * v);
    odd_before = odd, even = even_after, odd = odd_after;
  }
}

// Which fine rows restrict to coarse row J of an image of h rows: pointers by `row(j)`, zeros below
// an odd end.
template <typename Real, typename RowOf>
RF_INLINE void restriction_rows(int64_t coarse_row, int64_t h, const Real* zeros, const RowOf& row,
                                const Real* f[4]) {
  const int64_t j = 2 * coarse_row;
  f[1] = row(j);
  f[0] = j > 0 ? row(j - 1) : f[1];
  f[2] = j + 1 < h ? row(j + 1) : zeros;
  f[3] = j + 2 < h ? row(j + 2) : f[2];
}

}  // namespace impute
}  // namespace rf
