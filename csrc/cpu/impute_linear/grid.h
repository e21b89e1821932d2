// The arrays of one solve, carved out of a thread's share of the workspace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/impute_plan.h"
#include "cpu/impute_linear/team.h"
#include "cpu/impute_linear/vec.h"
#include "cpu/support/arena.h"

namespace rf {
namespace impute {

// The stencil of a level in the solver's precision; only used with custom weights.
template <typename Real>
struct StencilWeights {
  Real edge_x, edge_y, diag_main, diag_anti;
  // 2, where the compiler cannot see it: it would double by adding, and adders are what is short.
  Real two = 2;
};

// Elements [begin, end) of a row.
struct Span {
  int32_t begin, end;
};

// The parts of each row that have unknown cells, in pairs of vectors; the rest is known, and fields
// are 0 there. Smooth masks leave most of an image out.
struct Spans {
  Span* list;      // [h, per_row]
  int32_t* count;  // [h]
  int64_t per_row;

  const Span* begin(int64_t j) const { return list + j * per_row; }
  const Span* end(int64_t j) const { return begin(j) + count[j]; }
};

template <typename Layout>
struct Level {
  using Real = typename Layout::Real;
  int64_t h, w;
  int64_t n;       // vector elements of a row that hold pixels
  int64_t stride;  // between rows
  StencilWeights<Real> weights;
  Real restrict_scale;  // towards the next coarser level
  // [stride] row vectors for transfers from and to the next finer level: 3/4, at the ends 1.
  Real *even, *odd;
  Real* inv_children;  // [stride] 1 / pixels of the finer level in a cell with two rows
  // Fields [h, stride]. inv_diag is 0 on known cells.
  // centre: see Plan::centre, custom weights only.
  Real *r, *y, *b, *inv_diag, *centre;
  Spans spans;

  Real* row(Real* field, int64_t j) const { return field + j * stride; }
};

// Rows of a smoothed vector and of its residual, while a thread walks down an image.
template <typename Real>
struct Rings {
  Real *smooth[3], *residual[4];
};

// Everything about level 0, where the conjugate gradients run.
template <typename Layout>
struct Fine {
  using Real = typename Layout::Real;
  int64_t h, w, n, stride;
  int64_t bands, band_rows;  // what threads that share an image take turns at; an even number
  StencilWeights<Real> weights;
  Real restrict_scale;
  int8_t* removed;  // [h, stride], -1 at removed pixels and in the padding
  int8_t* unknown;  // [h, stride], -1 at pixels to solve for: removed and tied to a known one
  Spans spans;
  // [h, stride]. Cycles have q in z; the field of this name is for setting up.
  Real *u, *r, *p, *q, *z;
  // Row vectors; the inverse diagonal differs in the first, inner and last row.
  Real *inv_diag[3], *centre[3];
  Real* mean_weight[3];        // the same without damping
  Real *has_left, *has_right;  // 1 where the neighbour is inside the image
  Real* zeros;
  Rings<Real> rings[kMaxTeam];  // of each thread
  Real* row_totals;             // [h, 2, kVec] what a pass adds up, row by row
  // Passes change r, p and z in place and need the rows beyond a band as they were: the pass before
  // saves those around each border between bands, four rows of r, two of p and two of z.
  Real *saved_r, *saved_p, *saved_z;  // [bands - 1, 4 or 2, stride]

  Real* row(Real* field, int64_t j) const { return field + j * stride; }
  Real* row_total(int64_t j) const { return row_totals + 2 * j * Layout::kVec; }
  int64_t band_begin(int64_t band) const { return band * band_rows; }
  int64_t band_end(int64_t band) const { return band + 1 < bands ? (band + 1) * band_rows : h; }
  // Row j as it was saved at the border above `band`.
  Real* saved_r_row(int64_t band, int64_t j) const {
    return saved_r + ((band - 1) * 4 + j - band_begin(band) + 2) * stride;
  }
  Real* saved_p_row(int64_t band, int64_t j) const {
    return saved_p + ((band - 1) * 2 + j - band_begin(band) + 1) * stride;
  }
  Real* saved_z_row(int64_t band, int64_t j) const {
    return saved_z + ((band - 1) * 2 + j - band_begin(band) + 1) * stride;
  }
  bool row_any(int64_t j) const { return spans.count[j] > 0; }
  const int8_t* unknown_row(int64_t j) const { return unknown + j * stride; }
  int kind(int64_t j) const { return j == 0 ? 0 : j == h - 1 ? 2 : 1; }
  const Real* inv_diag_row(int64_t j) const { return inv_diag[kind(j)]; }
  const Real* mean_weight_row(int64_t j) const { return mean_weight[kind(j)]; }
  const Real* centre_row(int64_t j) const { return centre[kind(j)]; }
};

template <typename Layout>
struct Grid {
  using Real = typename Layout::Real;
  const Plan* plan;
  Team team;
  Fine<Layout> fine;
  Level<Layout> level[kMaxLevels];  // from 1
  Real* zeros;
};

// Lays out the arrays; with a counting arena nothing is written.
template <typename Layout>
void lay_out(Grid<Layout>* grid, const Plan& plan, Team team, Arena* arena) {
  using Real = typename Layout::Real;
  const auto weights_of = [&](int l) {
    const Weights& s = plan.weights[l];
    return StencilWeights<Real>{static_cast<Real>(s.edge_x), static_cast<Real>(s.edge_y),
                                static_cast<Real>(s.diag_main), static_cast<Real>(s.diag_anti),
                                Real(2)};
  };
  grid->plan = &plan;
  grid->team = team;
  Fine<Layout>& f = grid->fine;
  f.h = plan.size[0].h, f.w = plan.size[0].w;
  f.n = Layout::row_length(f.w), f.stride = Layout::row_stride(f.w);
  f.weights = weights_of(0);
  f.restrict_scale = static_cast<Real>(plan.restrict_scale[0]);
  f.band_rows = team.band_rows(f.h);
  f.bands = std::max<int64_t>(1, f.h / f.band_rows);
  const int64_t cells = f.h * f.stride;
  f.removed = arena->take<int8_t>(cells);
  f.unknown = arena->take<int8_t>(cells);
  const auto take_spans = [&](int64_t h, int64_t n) {
    // Two spans are at least two pairs of vectors apart.
    const int64_t per_row = n / (6 * Layout::kVec) + 1;
    return Spans{arena->take<Span>(h * per_row), arena->take<int32_t>(h), per_row};
  };
  f.spans = take_spans(f.h, f.n);
  for (Real** field : {&f.u, &f.r, &f.p, &f.q, &f.z}) *field = arena->take<Real>(cells);
  for (Real*& row : f.inv_diag) row = arena->take<Real>(f.stride);
  for (int kind = 0; kind < 3; ++kind) {
    f.mean_weight[kind] = plan.custom ? arena->take<Real>(f.stride) : f.inv_diag[kind];
  }
  for (Real*& row : f.centre) row = plan.custom ? arena->take<Real>(f.stride) : nullptr;
  f.has_left = arena->take<Real>(f.stride);
  f.has_right = arena->take<Real>(f.stride);
  for (int thread = 0; thread < team.threads; ++thread) {
    for (Real*& row : f.rings[thread].smooth) row = arena->take<Real>(f.stride);
    for (Real*& row : f.rings[thread].residual) row = arena->take<Real>(f.stride);
  }
  f.zeros = grid->zeros = arena->take<Real>(f.stride);
  for (int l = 1; l < plan.levels; ++l) {
    Level<Layout>& c = grid->level[l];
    c.h = plan.size[l].h, c.w = plan.size[l].w;
    c.n = Layout::row_length(c.w), c.stride = Layout::row_stride(c.w);
    c.weights = weights_of(l);
    c.restrict_scale = static_cast<Real>(plan.restrict_scale[l]);
    c.even = arena->take<Real>(c.stride);
    c.odd = arena->take<Real>(c.stride);
    c.inv_children = arena->take<Real>(c.stride);
    for (Real** field : {&c.r, &c.y, &c.b, &c.inv_diag}) *field = arena->take<Real>(c.h * c.stride);
    c.centre = plan.custom ? arena->take<Real>(c.h * c.stride) : nullptr;
    c.spans = take_spans(c.h, c.n);
  }
  f.row_totals = arena->take<Real>(f.h * 2 * Layout::kVec);
  f.saved_r = arena->take<Real>((f.bands - 1) * 4 * f.stride);
  f.saved_p = arena->take<Real>((f.bands - 1) * 2 * f.stride);
  f.saved_z = arena->take<Real>((f.bands - 1) * 2 * f.stride);
}

template <typename Real>
void clear_rows(Real* field, int64_t begin, int64_t end, int64_t stride) {
  memset(field + begin * stride, 0, static_cast<size_t>((end - begin) * stride) * sizeof(Real));
}

// What depends on the size and weights but not on a mask; once per thread and call.
template <typename Layout>
void fill_constants(Grid<Layout>* grid) {
  using Real = typename Layout::Real;
  const Plan& plan = *grid->plan;
  Fine<Layout>& f = grid->fine;
  const auto fill_row = [](Real* row, int64_t stride, int64_t w, auto value) {
    memset(row, 0, static_cast<size_t>(stride) * sizeof(Real));
    for (int64_t x = 0; x < w; ++x) {
      for (int lane = 0; lane < Layout::kSystems; ++lane) {
        row[Layout::index(x, lane)] = static_cast<Real>(value(x));
      }
    }
  };
  const Weights& s = plan.weights[0];
  fill_row(f.has_left, f.stride, f.w, [](int64_t x) { return x > 0 ? 1.0 : 0.0; });
  fill_row(f.has_right, f.stride, f.w, [&](int64_t x) { return x + 1 < f.w ? 1.0 : 0.0; });
  for (int kind = 0; kind < 3; ++kind) {
    const bool up = kind != 0, down = f.h > 1 && kind != 2;
    const auto diagonal = [&](int64_t x) {
      const double left = x > 0, right = x + 1 < f.w;
      return s.edge_x * (left + right) +
             up * (s.edge_y + s.diag_main * left + s.diag_anti * right) +
             down * (s.edge_y + s.diag_anti * left + s.diag_main * right);
    };
    const double damping = 1 + plan.centre;
    fill_row(f.inv_diag[kind], f.stride, f.w, [&](int64_t x) {
      const double d = diagonal(x);
      return d > 0 ? 1 / (damping * d) : 0.0;
    });
    if (!plan.custom) continue;
    fill_row(f.centre[kind], f.stride, f.w, [&](int64_t x) { return plan.centre * diagonal(x); });
    fill_row(f.mean_weight[kind], f.stride, f.w, [&](int64_t x) {
      const double d = diagonal(x);
      return d > 0 ? 1 / d : 0.0;
    });
  }
  for (int thread = 0; thread < grid->team.threads; ++thread) {
    const Rings<Real>& rings = f.rings[thread];
    for (Real* row : rings.smooth) clear_rows(row, 0, 1, f.stride);
    for (Real* row : rings.residual) clear_rows(row, 0, 1, f.stride);
  }
  clear_rows(f.zeros, 0, 1, f.stride);
  // Setting up for a mask writes the other fields; pixels leave the padding of this one.
  grid->team.rows(f.h, f.n,
                  [&](int64_t begin, int64_t end, int) { clear_rows(f.u, begin, end, f.stride); });
  for (int l = 1; l < plan.levels; ++l) {
    Level<Layout>& c = grid->level[l];
    fill_row(c.even, c.stride, c.w, [](int64_t x) { return x == 0 ? 1.0 : 0.75; });
    fill_row(c.odd, c.stride, c.w, [&](int64_t x) { return x == c.w - 1 ? 1.0 : 0.75; });
    const bool odd_width = plan.size[l - 1].w % 2 != 0;
    fill_row(c.inv_children, c.stride, c.w,
             [&](int64_t x) { return odd_width && x == c.w - 1 ? 0.5 : 0.25; });
  }
}

}  // namespace impute
}  // namespace rf
