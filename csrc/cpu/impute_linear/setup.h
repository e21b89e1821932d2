// From a mask to the hierarchy: which cells of each level are unknown, how firmly known pixels
// anchor them (field E), and the inverse diagonals. Once per mask; all channels share it.
#pragma once

#include "cpu/impute_linear/stencil.h"

namespace rf {
namespace impute {

// Removed pixels that no known pixel reaches through nonzero weights have no equation to hold them;
// they are taken out (state 2) and later get the empty value. state [h, w]: 0 known, 1 removed.
// Only weights that leave the image disconnected need this. Returns how many there are.
inline int64_t mark_unreachable(uint8_t* state, int64_t h, int64_t w, const Weights& s) {
  constexpr uint8_t kReached = 3;
  const auto reaches = [&](int64_t y, int64_t x, int dy, int dx, double weight) {
    const int64_t v = y + dy, u = x + dx;
    if (weight <= 0 || v < 0 || v >= h || u < 0 || u >= w) return false;
    return state[v * w + u] == 0 || state[v * w + u] == kReached;
  };
  const auto visit = [&](int64_t i) {
    if (state[i] != 1) return false;
    const int64_t y = i / w, x = i % w;
    for (const int sign : {-1, 1}) {
      if (reaches(y, x, 0, sign, s.edge_x) || reaches(y, x, sign, 0, s.edge_y) ||
          reaches(y, x, sign, sign, s.diag_main) || reaches(y, x, sign, -sign, s.diag_anti)) {
        state[i] = kReached;
        return true;
      }
    }
    return false;
  };
  for (bool changed = true; changed;) {  // alternating sweeps: few, unless paths wind
    changed = false;
    for (int64_t i = 0; i < h * w; ++i) changed |= visit(i);
    for (int64_t i = h * w - 1; changed && i >= 0; --i) visit(i);
  }
  int64_t unreachable = 0;
  for (int64_t i = 0; i < h * w; ++i) {
    if (state[i] == 1) state[i] = 2, ++unreachable;
    if (state[i] == kReached) state[i] = 1;
  }
  return unreachable;
}

// What a child gives to its cell's anchor: it saturates,
// as a firmly held pixel cannot hold more than itself.
template <typename Real>
RF_INLINE V<Real> saturate(V<Real> e, V<Real> k) {
  return e * k / (k + e);
}

// Unknown flags `m` (0 or 1) and saturated anchors `a` of a level -> flags c.y and anchors c.b of
// the next, in its rows [begin, end).
template <typename Layout>
void coarsen(const Level<Layout>& c, const typename Layout::Real* m, const typename Layout::Real* a,
             int64_t h, int64_t n, int64_t stride, typename Layout::Real scale,
             const typename Layout::Real* zeros, int64_t begin, int64_t end) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  const V<Real> one = splat<Real>(Real(1)), known_gain = splat<Real>(Real(kAnchorKnown));
  for (int64_t j = begin; j < end; ++j) {
    const bool two = 2 * j + 1 < h;
    const Real *m0 = m + 2 * j * stride, *a0 = a + 2 * j * stride;
    const Real *m1 = two ? m0 + stride : zeros, *a1 = two ? a0 + stride : zeros;
    const V<Real> per_child = splat<Real>(two ? Real(1) : Real(2));
    for (int64_t i = 0; i < c.n; i += kVec) {
      const int64_t k = 2 * i;
      const bool second = k + kVec < n;
      const auto sum = [&](const Real* p, const Real* q) {
        V<Real> even, odd;
        Layout::split(load(p + k) + load(q + k),
                      second ? load(p + k + kVec) + load(q + k + kVec) : V<Real>{}, &even, &odd);
        return even + odd;
      };
      const V<Real> unknown = sum(m0, m1);
      const V<Real> known_share = one - unknown * (load(c.inv_children + i) * per_child);
      const M<Real> any = unknown > V<Real>{};
      store<Real>(c.row(c.y, j) + i, keep<Real>(any, one));
      store<Real>(c.row(c.b, j) + i, keep<Real>(any, (one + known_gain * known_share) *
                                                         sum(a0, a1) * splat<Real>(scale)));
    }
  }
}

// The spans of row j in which `live` is not 0, a pair of vectors at a time; gaps of one pair are
// included, as each span costs a start.
template <typename Layout>
void find_spans(const typename Layout::Real* live, int64_t n, int64_t j, Spans* spans) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  Span* list = spans->list + j * spans->per_row;
  int32_t count = 0;
  for (int64_t i = 0; i < n; i += 2 * kVec) {
    const int64_t end = i + 2 * kVec < n ? i + 2 * kVec : n;
    V<Real> v = load(live + i);
    if (i + kVec < end) v += load(live + i + kVec);
    int64_t words[4];
    memcpy(words, &v, sizeof(words));
    if ((words[0] | words[1] | words[2] | words[3]) == 0) continue;
    if (count > 0 && (Layout::kIsLanes || i - list[count - 1].end <= 2 * kVec)) {
      list[count - 1].end = static_cast<int32_t>(end);
    } else {
      list[count++] = {static_cast<int32_t>(i), static_cast<int32_t>(end)};
    }
  }
  spans->count[j] = count;
}

// Leaves a 1 at every unknown pixel in fine.z, and the spans that have such.
template <typename Layout>
void flag_unknown(Grid<Layout>* grid) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  Fine<Layout>& f = grid->fine;
  const V<Real> one = splat<Real>(Real(1));
  grid->team.rows(f.h, f.n, [&](int64_t begin, int64_t end, int) {
    for (int64_t j = begin; j < end; ++j) {
      const int8_t* unknown = f.unknown_row(j);
      Real* m = f.row(f.z, j);
      for (int64_t i = 0; i < f.n; i += kVec) {
        store<Real>(m + i, keep<Real>(load_mask<Real>(unknown + i), one));
      }
      find_spans<Layout>(m, f.n, j, &f.spans);
    }
  });
}

// Saturated anchors of the rows [begin, end) of level 0 to fine.q, from the flags in fine.z.
template <typename Layout, bool kCustom>
void anchor_fine(const Grid<Layout>& grid, int64_t begin, int64_t end) {
  using Real = typename Layout::Real;
  const Fine<Layout>& f = grid.fine;
  const V<Real> one = splat<Real>(Real(1)), k = splat<Real>(Real(kAnchorSaturation));
  const Real damping = static_cast<Real>(1 + grid.plan->centre);
  for (int64_t j = begin; j < end; ++j) {
    if (!f.row_any(j)) {
      clear_rows(f.q, j, j + 1, f.stride);
      continue;
    }
    const Real* m = f.row(f.z, j);
    const Real *up = j > 0 ? m - f.stride : f.zeros, *down = j + 1 < f.h ? m + f.stride : f.zeros;
    Real* anchor = f.row(f.q, j);
    const Real* inv_diag = f.inv_diag_row(j);
    // The damped stencil's centre would count the pixel itself: leave it out by a row of zeros.
    const Span row{0, static_cast<int32_t>(f.n)};
    neighbour_sum<Layout, kCustom>(
        up, m, down, row, f.n, f.weights, f.zeros, [&](int64_t i, V<Real> o) {
          const M<Real> removed = load(m + i) > V<Real>{};
          const V<Real> diagonal = keep<Real>(removed, one / (load(inv_diag + i) * damping));
          const V<Real> e = max_of(diagonal - keep<Real>(removed, o), V<Real>{});
          store<Real>(anchor + i, saturate<Real>(e, k));
        });
  }
}

// From the flags c.y and anchors c.b of level l to its inverse diagonals and spans, and saturated
// anchors in c.r; rows [begin, end).
template <typename Layout, bool kCustom>
void finish_level(Grid<Layout>* grid, int l, int64_t begin, int64_t end) {
  using Real = typename Layout::Real;
  const Plan& plan = *grid->plan;
  Level<Layout>& c = grid->level[l];
  const V<Real> one = splat<Real>(Real(1));
  const Real damping = static_cast<Real>(1 + plan.centre);
  const V<Real> k =
      splat<Real>(static_cast<Real>(kCustom ? plan.saturation[l] : kAnchorSaturation));
  for (int64_t j = begin; j < end; ++j) {
    const Real *mid = c.row(c.y, j), *e = c.row(c.b, j);
    const Real *up = j > 0 ? mid - c.stride : grid->zeros,
               *down = j + 1 < c.h ? mid + c.stride : grid->zeros;
    Real *inv_diag = c.row(c.inv_diag, j), *centre = kCustom ? c.row(c.centre, j) : nullptr;
    Real* anchor = c.row(c.r, j);
    neighbour_sum<Layout, kCustom>(
        up, mid, down, Span{0, static_cast<int32_t>(c.n)}, c.n, c.weights, grid->zeros,
        [&](int64_t i, V<Real> o) {
          const V<Real> held = load(e + i), diagonal = o + held;
          const M<Real> live = (load(mid + i) > V<Real>{}) & (diagonal > V<Real>{});
          const V<Real> safe = select<Real>(live, diagonal, one);
          store<Real>(inv_diag + i, keep<Real>(live, one / (safe * damping)));
          if constexpr (kCustom)
            store<Real>(centre + i, keep<Real>(live, diagonal * Real(plan.centre)));
          store<Real>(anchor + i, saturate<Real>(held, k));
        });
    find_spans<Layout>(inv_diag, c.n, j, &c.spans);
  }
}

// Fills the coarse levels from the flags in fine.z. Uses fine.q as scratch.
template <typename Layout, bool kCustom>
void set_up_levels(Grid<Layout>* grid) {
  using Real = typename Layout::Real;
  const Plan& plan = *grid->plan;
  const Fine<Layout>& f = grid->fine;
  const Team& team = grid->team;
  team.rows(f.h, f.n, [&](int64_t begin, int64_t end, int) {
    anchor_fine<Layout, kCustom>(*grid, begin, end);
    clear_rows(f.p, begin, end, f.stride);  // what cycles read beyond spans must be 0
  });
  const Real *m = f.z, *a = f.q;
  int64_t h = f.h, n = f.n, stride = f.stride;
  for (int l = 1; l < plan.levels; ++l) {
    const Level<Layout>& c = grid->level[l];
    const Real scale = l == 1 ? f.restrict_scale : grid->level[l - 1].restrict_scale;
    team.rows(c.h, n, [&](int64_t begin, int64_t end, int) {
      coarsen<Layout>(c, m, a, h, n, stride, scale, grid->zeros, begin, end);
    });
    team.rows(c.h, c.n, [&](int64_t begin, int64_t end, int) {
      finish_level<Layout, kCustom>(grid, l, begin, end);
    });
    m = c.y, a = c.r, h = c.h, n = c.n, stride = c.stride;
  }
  for (int l = 1; l < plan.levels; ++l) {
    const Level<Layout>& c = grid->level[l];
    team.rows(c.h, c.n, [&](int64_t begin, int64_t end, int) {
      clear_rows(c.y, begin, end, c.stride);
      clear_rows(c.b, begin, end, c.stride);
    });
  }
}

}  // namespace impute
}  // namespace rf
