// What one thread block shares while it solves a system: the arrays
// of every level, loops over their cells, and reductions. Threads
// are (32, kThreads / 32): x runs along a row, y takes chunks of rows.
#pragma once

#include "common/impute_plan.h"
#include "cuda/support/launch.h"

namespace rf {
namespace impute {

template <typename Real>
struct DeviceWeights {
  Real edge_x, edge_y, diag_main, diag_anti;
};

template <typename Real>
struct DeviceLevel {
  int h, w;
  DeviceWeights<Real> weights;
  Real saturation;
};

// The plan as a kernel argument.
template <typename Real>
struct DevicePlan {
  int levels;
  int shared_from;  // levels from here on live in shared memory
  bool connected;
  Real centre;     // 1 / omega - 1 of the damped smoother
  Real tolerance;  // of the range of the known pixels
  DeviceLevel<Real> level[kMaxLevels];
};

// A coarse level's fields [h, w]; inv is 0 on known cells.
template <typename Real>
struct Field {
  Real *r, *y, *b, *inv;
};

// Level 0. live: 1 at pixels to solve for.
template <typename Real>
struct FineField {
  Real *u, *r, *p, *q, *z;
  uint8_t* live;
};

template <typename Real>
struct CgResult {
  int iterations;
  Real last_correction;
  bool converged;
};

// f(x, y, index) for every cell, spread over the block.
template <typename F>
__device__ __forceinline__ void for_cells(int h, int w, const F& f) {
  for (int y = threadIdx.y; y < h; y += blockDim.y) {
    for (int x = threadIdx.x; x < w; x += 32) f(x, y, y * w + x);
  }
}

// f(x, y, index, own value, weighted sum of the eight neighbours), zero outside. A thread walks
// down its columns and keeps three rows in registers: three loads per cell instead of nine.
template <typename Real, typename F>
__device__ __forceinline__ void for_neighbour_sums(const Real* src, int h, int w,
                                                   const DeviceWeights<Real>& s, const F& f) {
  const int rows = (h + static_cast<int>(blockDim.y) - 1) / static_cast<int>(blockDim.y);
  const int begin = static_cast<int>(threadIdx.y) * rows, end = begin + rows < h ? begin + rows : h;
  for (int x = threadIdx.x; x < w; x += 32) {
    if (begin >= end) break;
    const bool left = x > 0, right = x + 1 < w;
    const auto at = [&](int y, int dx) {
      const bool inside = y >= 0 && y < h && (dx >= 0 || left) && (dx <= 0 || right);
      return inside ? src[y * w + x + dx] : Real(0);
    };
    Real ul = at(begin - 1, -1), um = at(begin - 1, 0), ur = at(begin - 1, 1);
    Real ml = at(begin, -1), mm = at(begin, 0), mr = at(begin, 1);
    for (int y = begin; y < end; ++y) {
      const Real dl = at(y + 1, -1), dm = at(y + 1, 0), dr = at(y + 1, 1);
      const Real sum = s.edge_x * (ml + mr) + s.edge_y * (um + dm) + s.diag_main * (ul + dr) +
                       s.diag_anti * (ur + dl);
      f(x, y, y * w + x, mm, sum);
      ul = ml, um = mm, ur = mr, ml = dl, mm = dm, mr = dr;
    }
  }
}

// f(x, y, index, own value, L): L sums weight * (neighbour - own) over the neighbours inside the
// image, from differences so that float32 does not lose them among large values.
template <typename Real, typename F>
__device__ __forceinline__ void for_laplacians(const Real* src, int h, int w,
                                               const DeviceWeights<Real>& s, const F& f) {
  const int rows = (h + static_cast<int>(blockDim.y) - 1) / static_cast<int>(blockDim.y);
  const int begin = static_cast<int>(threadIdx.y) * rows, end = begin + rows < h ? begin + rows : h;
  for (int x = threadIdx.x; x < w; x += 32) {
    if (begin >= end) break;
    const bool left = x > 0, right = x + 1 < w;
    const auto at = [&](int y, int dx) {
      const bool inside = y >= 0 && y < h && (dx >= 0 || left) && (dx <= 0 || right);
      return inside ? src[y * w + x + dx] : Real(0);
    };
    Real ul = at(begin - 1, -1), um = at(begin - 1, 0), ur = at(begin - 1, 1);
    Real ml = at(begin, -1), mm = at(begin, 0), mr = at(begin, 1);
    for (int y = begin; y < end; ++y) {
      const Real dl = at(y + 1, -1), dm = at(y + 1, 0), dr = at(y + 1, 1);
      const bool up = y > 0, down = y + 1 < h;
      const auto diff = [&](bool inside, Real v) { return inside ? v - mm : Real(0); };
      const Real sum = s.edge_x * (diff(left, ml) + diff(right, mr)) +
                       s.edge_y * (diff(up, um) + diff(down, dm)) +
                       s.diag_main * (diff(up && left, ul) + diff(down && right, dr)) +
                       s.diag_anti * (diff(up && right, ur) + diff(down && left, dl));
      f(x, y, y * w + x, mm, sum);
      ul = ml, um = mm, ur = mr, ml = dl, mm = dm, mr = dr;
    }
  }
}

// Sum of the weights of a pixel's neighbours inside the image.
template <typename Real>
__device__ __forceinline__ Real diagonal_at(int x, int y, int h, int w,
                                            const DeviceWeights<Real>& s) {
  const Real left = x > 0, right = x + 1 < w, up = y > 0, down = y + 1 < h;
  return s.edge_x * (left + right) + s.edge_y * (up + down) +
         s.diag_main * (up * left + down * right) + s.diag_anti * (up * right + down * left);
}

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Every thread gets the result; the order is fixed, so it is the same in every run. partial: [32]
// in shared memory.
template <typename T, typename Op>
__device__ T block_reduce(T v, Op op, T* partial) {
  for (int offset = 16; offset > 0; offset /= 2)
    v = op(v, __shfl_down_sync(0xffffffffu, v, offset));
  if (threadIdx.x == 0) partial[threadIdx.y] = v;
  __syncthreads();
  v = partial[0];
  for (int k = 1; k < static_cast<int>(blockDim.y); ++k) v = op(v, partial[k]);
  __syncthreads();
  return v;
}

}  // namespace impute
}  // namespace rf
