// One pass of a Gaussian filter with a long radius (sigma from about 6 on), along columns or rows.
// A block makes a tile of 32 lines x kLongTile outputs from shared memory. A thread makes kRun
// neighbouring outputs of one line; the pixels before and after them move through registers, so
// that a tap costs two loads for all of its outputs. Reads each pixel (1 + 2 radius / 128) times,
// writes it once.
#pragma once

#include "cuda/support/launch.h"
#include "cuda/support/tiles.h"

namespace rf {

constexpr int kRun = 16, kLongTile = kRun * kTileThreadsY, kLongLines = 32;
constexpr int kMaxLongRadius = 240;  // 1.9 KB of weights in the kernel's parameters

template <typename C>
struct LongWeights {
  C at[kMaxLongRadius + 1];
};

// The halo of a tile: whole runs, so that registers turn round evenly.
inline int long_halo(int64_t radius) { return static_cast<int>((radius + kRun - 1) / kRun * kRun); }

// Shared memory of either pass; rows are one longer than their pixels, against bank conflicts.
template <typename C>
size_t long_shared_bytes(int64_t radius) {
  return static_cast<size_t>(kLongLines) * (kLongTile + 2 * long_halo(radius) + 1) * sizeof(C);
}

// sums[i]: the filtered pixel line[(halo + i) * stride], from the outermost pair inwards as
// everywhere.
template <typename C>
__device__ __forceinline__ void blur_run(const C* line, int stride, const LongWeights<C>& weights,
                                         int radius, int halo, C (&sums)[kRun]) {
  C before[kRun], after[kRun];  // of tap k - s, pixel i: before[(i + s) % kRun], after[(i - s) ...]
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    sums[i] = -C(0);
    before[i] = line[i * stride];
    after[i] = line[(2 * halo + i) * stride];
  }
  for (int k = halo; k > 0; k -= kRun) {
    const C* next_before = line + (halo - k + kRun) * stride;
    const C* next_after = line + (halo + k - 1) * stride;
#pragma unroll
    for (int s = 0; s < kRun; ++s) {
      if (k - s <= radius) {
        const C weight = weights.at[k - s];
#pragma unroll
        for (int i = 0; i < kRun; ++i) {
          sums[i] += weight * (before[(i + s) % kRun] + after[(i - s + kRun) % kRun]);
        }
      }
      before[s] = next_before[s * stride];
      after[kRun - 1 - s] = next_after[-s * stride];
    }
  }
#pragma unroll
  for (int i = 0; i < kRun; ++i) sums[i] += weights.at[0] * line[(halo + i) * stride];
}

struct LongTiling {
  int h, w, per_row, per_image;
  int64_t total;

  LongTiling(int64_t n, int64_t h, int64_t w, int tile_h, int tile_w)
      : h(static_cast<int>(h)),
        w(static_cast<int>(w)),
        per_row(static_cast<int>((w + tile_w - 1) / tile_w)),
        per_image(per_row * static_cast<int>((h + tile_h - 1) / tile_h)),
        total(n * per_image) {}
  dim3 grid() const { return dim3(static_cast<unsigned>(std::min(total, kMaxGrid))); }
};

// Along columns: lane = column, warp = run of rows.
template <typename In, typename Out>
__global__ void __launch_bounds__(kTileThreadsX* kTileThreadsY, 2)
    gaussian_long_columns_kernel(const In* __restrict__ in,  // [n, h, w]
                                 Out* __restrict__ out,      // [n, h, w]
                                 const LongTiling tiling, int radius, int halo, rf_border mode,
                                 compute_t<In> cval,
                                 const __grid_constant__ LongWeights<compute_t<In>> weights) {
  using C = compute_t<In>;
  RF_DYNAMIC_SHARED(C, tile);  // [rows + 2 halo, 32]
  const int run = static_cast<int>(threadIdx.y) * kRun, lane = static_cast<int>(threadIdx.x);
  for (int64_t t = blockIdx.x; t < tiling.total; t += gridDim.x) {
    const int64_t image = t / tiling.per_image;
    const int in_image = static_cast<int>(t - image * tiling.per_image);
    const int tile_y = in_image / tiling.per_row,
              x = (in_image - tile_y * tiling.per_row) * kLongLines, y = tile_y * kLongTile;
    const int64_t first = image * tiling.h * tiling.w;
    const int left = tiling.h - y < kLongTile ? tiling.h - y : kLongTile;
    load_tile(in + first, tiling.h, tiling.w, y - halo, x,
              (left + kRun - 1) / kRun * kRun + 2 * halo, kLongLines, kLongLines,
              Borders{mode, mode}, cval, tile, [](In v) { return load(v); });
    __syncthreads();
    if (run < left) {
      C sums[kRun];
      blur_run(tile + run * kLongLines + lane, kLongLines, weights, radius, halo, sums);
      if (x + lane < tiling.w) {
        Out* to = out + first + static_cast<int64_t>(y + run) * tiling.w + x + lane;
#pragma unroll
        for (int i = 0; i < kRun; ++i) {
          if (run + i < left) *to = store<Out>(sums[i]);
          to += tiling.w;
        }
      }
    }
    __syncthreads();  // the next tile overwrites shared memory
  }
}

// Along rows: lane = row, warp = run of columns; results go out through shared memory.
template <typename In, typename Out>
__global__ void __launch_bounds__(kTileThreadsX* kTileThreadsY, 2)
    gaussian_long_rows_kernel(const In* __restrict__ in,  // [n, h, w]
                              Out* __restrict__ out,      // [n, h, w]
                              const LongTiling tiling, int radius, int halo, rf_border mode,
                              compute_t<In> cval,
                              const __grid_constant__ LongWeights<compute_t<In>> weights) {
  using C = compute_t<In>;
  RF_DYNAMIC_SHARED(C, tile);  // [32, pitch]
  const int run = static_cast<int>(threadIdx.y) * kRun, lane = static_cast<int>(threadIdx.x);
  const int pitch = kLongTile + 2 * halo + 1;
  for (int64_t t = blockIdx.x; t < tiling.total; t += gridDim.x) {
    const int64_t image = t / tiling.per_image;
    const int in_image = static_cast<int>(t - image * tiling.per_image);
    const int tile_y = in_image / tiling.per_row,
              x = (in_image - tile_y * tiling.per_row) * kLongTile, y = tile_y * kLongLines;
    const int64_t first = image * tiling.h * tiling.w;
    const int rows = tiling.h - y < kLongLines ? tiling.h - y : kLongLines;
    const int left = tiling.w - x < kLongTile ? tiling.w - x : kLongTile;
    load_tile(in + first, tiling.h, tiling.w, y, x - halo, rows,
              (left + kRun - 1) / kRun * kRun + 2 * halo, pitch, Borders{mode, mode}, cval, tile,
              [](In v) { return load(v); });
    __syncthreads();
    C sums[kRun];
    const bool active = lane < rows && run < left;
    if (active) blur_run(tile + lane * pitch + run, 1, weights, radius, halo, sums);
    __syncthreads();
    if (active) {
#pragma unroll
      for (int i = 0; i < kRun; ++i) tile[lane * pitch + run + i] = sums[i];
    }
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < rows; r += kTileThreadsY) {
      Out* to = out + first + static_cast<int64_t>(y + r) * tiling.w + x;
      for (int c = lane; c < left; c += kTileThreadsX) to[c] = store<Out>(tile[r * pitch + c]);
    }  // and load_tile gives a thread the same places of the next tile
  }
}

}  // namespace rf
