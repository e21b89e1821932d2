// Set-up of the levels from a mask, and the V-cycle over them; every
// function is called by the whole block and ends with a barrier. The
// same method as csrc/cpu/impute_linear/: docs/imputation.md.
#pragma once

#include "cuda/impute_linear/block.h"

namespace rf {
namespace impute {

template <typename Real>
__device__ __forceinline__ Real saturate(Real e, Real k) {
  return e * k / (k + e);
}

// What the known neighbours of pixel (x, y) hold it with.
template <typename Real>
__device__ __forceinline__ Real anchor_at(const uint8_t* live, int x, int y, int h, int w,
                                          const DeviceWeights<Real>& s) {
  const auto known = [&](int dx, int dy) {
    const int u = x + dx, v = y + dy;
    return u >= 0 && u < w && v >= 0 && v < h && !live[v * w + u] ? Real(1) : Real(0);
  };
  return s.edge_x * (known(-1, 0) + known(1, 0)) + s.edge_y * (known(0, -1) + known(0, 1)) +
         s.diag_main * (known(-1, -1) + known(1, 1)) + s.diag_anti * (known(1, -1) + known(-1, 1));
}

// Flags and anchors of level l (in y and b) from those
// of the level above it, then its inverse diagonal.
template <typename Real>
__device__ void set_up_level(const DevicePlan<Real>& plan, const uint8_t* live,
                             const Field<Real>* fields, int l) {
  const DeviceLevel<Real>&fine = plan.level[l - 1], &coarse = plan.level[l];
  const Field<Real> c = fields[l];
  for_cells(coarse.h, coarse.w, [&](int cx, int cy, int i) {
    int inside = 0, unknown = 0;
    Real held = 0;
    for (int k = 0; k < 4; ++k) {
      const int x = 2 * cx + (k & 1), y = 2 * cy + (k >> 1), j = y * fine.w + x;
      if (x >= fine.w || y >= fine.h) continue;
      ++inside;
      if (l == 1 ? live[j] == 0 : fields[l - 1].y[j] == 0) continue;
      ++unknown;
      const Real e =
          l == 1 ? anchor_at(live, x, y, fine.h, fine.w, fine.weights) : fields[l - 1].b[j];
      held += saturate(e, fine.saturation);
    }
    const Real known_share = Real(inside - unknown) / Real(inside);
    c.y[i] = unknown > 0 ? Real(1) : Real(0);
    c.b[i] = (1 + Real(kAnchorKnown) * known_share) * held;
  });
  __syncthreads();
  for_neighbour_sums<Real>(
      c.y, coarse.h, coarse.w, coarse.weights, [&](int, int, int i, Real own, Real sum) {
        const Real diagonal = sum + c.b[i];
        c.inv[i] = own > 0 && diagonal > 0 ? 1 / (diagonal * (1 + plan.centre)) : Real(0);
      });  // the next level reads other fields; a barrier follows before `inv` is used
}

// Residual of a finer level (zero where known) -> right-hand
// side of the coarser one: the transpose of prolong_at.
template <typename Real>
__device__ void restrict_to(const Real* residual, int h, int w, Real* out, int coarse_h,
                            int coarse_w) {
  for_cells(coarse_h, coarse_w, [&](int cx, int cy, int i) {
    Real total = 0;
    for (int dy = -1; dy <= 2; ++dy) {
      // Beyond the border the nearest row counts again;
      // a row missing below an odd height counts nothing.
      int y = 2 * cy + dy;
      y = y < 0 ? 0 : y == 2 * coarse_h ? y - 1 : y;
      if (y >= h) continue;
      Real row = 0;
      for (int dx = -1; dx <= 2; ++dx) {
        int x = 2 * cx + dx;
        x = x < 0 ? 0 : x == 2 * coarse_w ? x - 1 : x;
        if (x < w) row += (dx == 0 || dx == 1 ? Real(0.75) : Real(0.25)) * residual[y * w + x];
      }
      total += (dy == 0 || dy == 1 ? Real(0.75) : Real(0.25)) * row;
    }
    out[i] = total;
  });  // the thread that wrote a cell is the one that reads it first
}

// Cell-centred bilinear interpolation of coarse values at fine cell (x, y).
template <typename Real>
__device__ __forceinline__ Real prolong_at(const Real* e, int coarse_h, int coarse_w, int x,
                                           int y) {
  const int nx = x / 2, ny = y / 2;
  int fx = x % 2 ? nx + 1 : nx - 1, fy = y % 2 ? ny + 1 : ny - 1;
  if (fx < 0 || fx >= coarse_w) fx = nx;
  if (fy < 0 || fy >= coarse_h) fy = ny;
  const Real near_row = Real(0.75) * e[ny * coarse_w + nx] + Real(0.25) * e[ny * coarse_w + fx];
  const Real far_row = Real(0.75) * e[fy * coarse_w + nx] + Real(0.25) * e[fy * coarse_w + fx];
  return Real(0.75) * near_row + Real(0.25) * far_row;
}

// Level 1's equations for the residual in fields[1].r, approximately
// solved into fields[1].y. Damping folds into the stencil as a centre
// weight kappa D, so that inv * centre = kappa / (1 + kappa).
template <typename Real>
__device__ void solve_coarse(const DevicePlan<Real>& plan, const Field<Real>* fields) {
  const int last = plan.levels - 1;
  const Real kept = plan.centre / (1 + plan.centre);
  for (int l = 1; l < last; ++l) {
    const DeviceLevel<Real>&g = plan.level[l], &below = plan.level[l + 1];
    const Field<Real> c = fields[l];
    for_cells(g.h, g.w, [&](int, int, int i) { c.y[i] = c.inv[i] * c.r[i]; });
    __syncthreads();
    for_neighbour_sums<Real>(c.y, g.h, g.w, g.weights, [&](int, int, int i, Real own, Real sum) {
      c.b[i] = c.inv[i] * sum + kept * own;
    });
    __syncthreads();
    // y = inv r can be had again on the way up: its array holds the residual of y + b meanwhile,
    // which is the neighbour sum of b.
    for_neighbour_sums<Real>(c.b, g.h, g.w, g.weights, [&](int, int, int i, Real own, Real sum) {
      const Real inv = c.inv[i];
      c.y[i] = inv > 0 ? sum + kept / inv * own : Real(0);
    });
    __syncthreads();
    restrict_to(c.y, g.h, g.w, fields[l + 1].r, below.h, below.w);
  }
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    fields[last].y[0] = fields[last].inv[0] * fields[last].r[0] * (1 + plan.centre);
  }
  __syncthreads();
  for (int l = last - 1; l >= 1; --l) {
    const DeviceLevel<Real>&g = plan.level[l], &below = plan.level[l + 1];
    const Field<Real> c = fields[l];
    const Real* e = fields[l + 1].y;
    for_cells(g.h, g.w, [&](int x, int y, int i) {
      const Real inv = c.inv[i];
      c.y[i] = inv > 0 ? inv * c.r[i] + c.b[i] + prolong_at(e, below.h, below.w, x, y) : Real(0);
    });
    __syncthreads();
    for_neighbour_sums<Real>(c.y, g.h, g.w, g.weights, [&](int, int, int i, Real own, Real sum) {
      c.b[i] = c.inv[i] * (c.r[i] + sum) + kept * own;
    });
    __syncthreads();
    for_neighbour_sums<Real>(c.b, g.h, g.w, g.weights, [&](int, int, int i, Real own, Real sum) {
      c.y[i] = c.inv[i] * (c.r[i] + sum) + kept * own;
    });
    __syncthreads();
  }
}

}  // namespace impute
}  // namespace rf
