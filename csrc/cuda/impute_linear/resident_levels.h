// The coarse levels of a resident system (resident.h): the V-cycle of vcycle.h over arrays that are
// all in shared memory and have a margin of zeros, so that no neighbour needs a test. Levels of up
// to kWarpCells cells are one warp's work, which needs no barriers of the block.
#pragma once

#include "cuda/impute_linear/vcycle.h"

namespace rf {
namespace impute {

constexpr int kResidentLevels = 7;  // of 64 x 64
constexpr int kWarpCells = 64;

// A level's position in the arrays below, and its size.
struct ResidentLevel {
  int h, w, begin, log_pitch;  // 2^log_pitch >= w threads take a row
};

struct ResidentPlan {
  int levels, cells;  // cells of all coarse levels, margins included
  int first_warp_level;
  float centre, tolerance, edge, diagonal;  // the stencil of level 0
  float saturation0;
  ResidentLevel level[kResidentLevels];
  DeviceWeights<float> weights[kResidentLevels];
  float saturation[kResidentLevels];
};

// Fields of all coarse levels; r, y and b are a channel's own, inv is that of the image.
struct ResidentFields {
  float *inv, *r, *y, *b;
};

// The threads that work together on a channel: its warps, or one of them. An idle team waits at the
// barriers but has no cells.
template <bool kBlock>
struct Team {
  int rank, size;
  bool idle;

  __device__ __forceinline__ void sync() const {
    if (kBlock) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  }
  // f(x, y, index) for every cell of a level.
  template <typename F>
  __device__ __forceinline__ void for_cells(const ResidentLevel& g, const F& f) const {
    if (idle) return;
    const int x = rank & ((1 << g.log_pitch) - 1), step = size >> g.log_pitch;
    if (x >= g.w) return;
#pragma unroll 1  // the pixels' values need the registers
    for (int y = rank >> g.log_pitch; y < g.h; y += step) {
      f(x, y, g.begin + (y + 1) * (g.w + 2) + x + 1);
    }
  }
};

__device__ __forceinline__ float sum_of_neighbours(const float* at, int pitch,
                                                   const DeviceWeights<float>& s) {
  const float edges = __fmaf_rn(s.edge_x, at[-1] + at[1], s.edge_y * (at[-pitch] + at[pitch]));
  const float main = at[-pitch - 1] + at[pitch + 1], anti = at[1 - pitch] + at[pitch - 1];
  return __fmaf_rn(s.diag_main, main, __fmaf_rn(s.diag_anti, anti, edges));
}

// Four rows and columns around cell (cx, cy) of a level half as fine, 1/4 3/4 3/4 1/4: the
// transpose of prolong. `fine` points to cell (0, 0). Beyond the border the nearest row counts
// again; a row missing below an odd height is the margin and counts nothing.
__device__ __forceinline__ float restricted(const float* fine, int pitch, int cx, int cy,
                                            const ResidentLevel& coarse) {
  const int x[4] = {cx > 0 ? 2 * cx - 1 : 0, 2 * cx, 2 * cx + 1,
                    cx + 1 < coarse.w ? 2 * cx + 2 : 2 * cx + 1};
  const auto row = [&](int y) {
    const float* at = fine + y * pitch;
    return __fmaf_rn(0.75f, at[x[1]] + at[x[2]], 0.25f * (at[x[0]] + at[x[3]]));
  };
  const float outer =
      row(cy > 0 ? 2 * cy - 1 : 0) + row(cy + 1 < coarse.h ? 2 * cy + 2 : 2 * cy + 1);
  return __fmaf_rn(0.75f, row(2 * cy) + row(2 * cy + 1), 0.25f * outer);
}

// Cell-centred bilinear interpolation of a coarse field at fine cell (x, y).
__device__ __forceinline__ float prolonged(const float* field, const ResidentLevel& coarse, int x,
                                           int y) {
  const int pitch = coarse.w + 2, nx = x >> 1, ny = y >> 1;
  int fx = nx + ((x & 1) ? 1 : -1), fy = ny + ((y & 1) ? 1 : -1);
  if (fx < 0 || fx >= coarse.w) fx = nx;
  if (fy < 0 || fy >= coarse.h) fy = ny;
  const float *near = field + coarse.begin + (ny + 1) * pitch + 1,
              *far = field + coarse.begin + (fy + 1) * pitch + 1;
  const float near_row = __fmaf_rn(0.75f, near[nx], 0.25f * near[fx]);
  const float far_row = __fmaf_rn(0.75f, far[nx], 0.25f * far[fx]);
  return __fmaf_rn(0.75f, near_row, 0.25f * far_row);
}

// Flags and anchors of level l (in y and b) from those of the level above it, then its inverse
// diagonal. finer(x, y): whether a cell of that level is unknown, and what holds it.
template <typename T, typename Finer>
__device__ __forceinline__ void set_up(const T& team, const ResidentPlan& plan,
                                       const ResidentFields& f, int l, const Finer& finer) {
  const ResidentLevel &fine = plan.level[l - 1], &coarse = plan.level[l];
  team.for_cells(coarse, [&](int cx, int cy, int i) {
    int inside = 0, unknown = 0;
    float held = 0;
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
      const int x = 2 * cx + (k & 1), y = 2 * cy + (k >> 1);
      if (x >= fine.w || y >= fine.h) continue;
      ++inside;
      float anchor = 0;
      if (!finer(x, y, &anchor)) continue;
      ++unknown;
      held += saturate(anchor, plan.saturation[l - 1]);
    }
    const float known_share = static_cast<float>(inside - unknown) / static_cast<float>(inside);
    f.y[i] = unknown > 0 ? 1.0f : 0.0f;
    f.b[i] = (1 + static_cast<float>(kAnchorKnown) * known_share) * held;
  });
  team.sync();
  team.for_cells(coarse, [&](int, int, int i) {
    const float diagonal = sum_of_neighbours(f.y + i, coarse.w + 2, plan.weights[l]) + f.b[i];
    const bool solved = f.y[i] > 0 && diagonal > 0;
    f.inv[i] = solved ? 1 / (diagonal * (1 + plan.centre)) : 0.0f;
  });
  team.sync();
}

// Level l from the one above it, both coarse.
template <typename T>
__device__ __forceinline__ void set_up_from_coarse(const T& team, const ResidentPlan& plan,
                                                   const ResidentFields& f, int l) {
  const ResidentLevel& fine = plan.level[l - 1];
  set_up(team, plan, f, l, [&](int x, int y, float* anchor) {
    const int i = fine.begin + (y + 1) * (fine.w + 2) + x + 1;
    *anchor = f.b[i];
    return f.y[i] > 0;
  });
}

// On the way down: r of level l and y = r / D come from `residual`, b is the second sweep, and y
// becomes the residual of both. y = inv r can be had again on the way up.
template <typename T, typename Residual>
__device__ __forceinline__ void go_down(const T& team, const ResidentPlan& plan,
                                        const ResidentFields& f, int l, const Residual& residual) {
  const ResidentLevel& g = plan.level[l];
  const DeviceWeights<float> s = plan.weights[l];
  const float kept = plan.centre / (1 + plan.centre);
  const bool last = l == plan.levels - 1;
  team.for_cells(g, [&](int x, int y, int i) {
    const float r = residual(x, y);
    f.r[i] = r;
    f.y[i] = f.inv[i] * r * (last ? 1 + plan.centre : 1.0f);
  });
  team.sync();
  if (last) return;
  team.for_cells(g, [&](int, int, int i) {
    const float sum = sum_of_neighbours(f.y + i, g.w + 2, s);
    f.b[i] = __fmaf_rn(f.inv[i], sum, kept * f.y[i]);
  });
  team.sync();
  team.for_cells(g, [&](int, int, int i) {
    const float sum = sum_of_neighbours(f.b + i, g.w + 2, s), inv = f.inv[i];
    f.y[i] = inv > 0 ? __fmaf_rn(kept / inv, f.b[i], sum) : 0.0f;
  });
  team.sync();
}

// On the way up: the correction of level l + 1, then two sweeps.
template <typename T>
__device__ __forceinline__ void come_up(const T& team, const ResidentPlan& plan,
                                        const ResidentFields& f, int l) {
  const ResidentLevel &g = plan.level[l], &below = plan.level[l + 1];
  const DeviceWeights<float> s = plan.weights[l];
  const float kept = plan.centre / (1 + plan.centre);
  team.for_cells(g, [&](int x, int y, int i) {
    const float inv = f.inv[i];
    f.y[i] = inv > 0 ? __fmaf_rn(inv, f.r[i], f.b[i]) + prolonged(f.y, below, x, y) : 0.0f;
  });
  team.sync();
  const auto sweep = [&](const float* from, float* to) {
    team.for_cells(g, [&](int, int, int i) {
      const float sum = f.r[i] + sum_of_neighbours(from + i, g.w + 2, s);
      to[i] = __fmaf_rn(f.inv[i], sum, kept * from[i]);
    });
    team.sync();
  };
  sweep(f.y, f.b);
  sweep(f.b, f.y);
}

// Level 1's equations for the residual of level 0, approximately solved into its y. The block does
// the large levels, a warp of each channel the small ones.
template <typename Residual>
__device__ __forceinline__ void solve_levels(const Team<true>& block, const Team<false>& warp,
                                             const ResidentPlan& plan, const ResidentFields& f,
                                             const Residual& residual_of_pixels) {
  const auto residual_of_level = [&](int l) {
    const ResidentLevel& fine = plan.level[l];
    const float* at = f.y + fine.begin + fine.w + 3;
    return [=, &plan](int x, int y) { return restricted(at, fine.w + 2, x, y, plan.level[l + 1]); };
  };
  const int split = plan.first_warp_level;
#pragma unroll 1
  for (int l = 1; l < split; ++l) {
    if (l == 1) {
      go_down(block, plan, f, l, residual_of_pixels);
    } else {
      go_down(block, plan, f, l, residual_of_level(l - 1));
    }
  }
  if (split < plan.levels) {
#pragma unroll 1
    for (int l = split; l < plan.levels; ++l) {
      if (l == 1) {
        go_down(warp, plan, f, l, residual_of_pixels);
      } else {
        go_down(warp, plan, f, l, residual_of_level(l - 1));
      }
    }
#pragma unroll 1
    for (int l = plan.levels - 2; l >= split; --l) come_up(warp, plan, f, l);
    __syncthreads();
  }
  const int coarsest = split < plan.levels ? split - 1 : plan.levels - 2;
#pragma unroll 1
  for (int l = coarsest; l >= 1; --l) come_up(block, plan, f, l);
}

}  // namespace impute
}  // namespace rf
