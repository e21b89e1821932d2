// What the tiled CUDA filters share: which tile a block works on, and loading it with its halo.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/border.h"
#include "common/dtype.h"
#include "common/status.h"
#include "cuda/support/launch.h"

namespace rf {

constexpr int kTileThreadsX = 32,
              kTileThreadsY = 8;  // a block of 256: each warp takes a row at a time
constexpr int kTileHeight = 32;
constexpr int64_t kMaxGrid = 0x7fffffff;
constexpr size_t kSharedLimit = 48 * 1024;  // what any kernel may use on any device

// Wide tiles waste less on their halo; doubles get half, as they take twice the shared memory.
template <typename C>
constexpr int kTileWidth = sizeof(C) == 8 ? 32 : 64;

// n images of h x w, cut into tiles of `tile_w` x kTileHeight; blocks walk over them with a grid
// stride. Positions within an image are int (see check_tileable), offsets into the batch int64.
struct Tiling {
  int h, w, per_row, per_image;
  int64_t total;

  Tiling(int64_t n, int64_t h, int64_t w, int tile_w)
      : h(static_cast<int>(h)),
        w(static_cast<int>(w)),
        per_row(static_cast<int>((w + tile_w - 1) / tile_w)),
        per_image(per_row * static_cast<int>((h + kTileHeight - 1) / kTileHeight)),
        total(n * per_image) {}
  dim3 grid() const { return dim3(static_cast<unsigned>(std::min(total, kMaxGrid))); }
};

// Sides of 2^28 leave room for windows that reach over the border by several times the side.
inline rf_status check_tileable(int64_t h, int64_t w) {
  constexpr int64_t kMaxSide = int64_t{1} << 28;
  if (h <= kMaxSide && w <= kMaxSide && h * w / (kTileHeight * 32) < kMaxGrid) return RF_OK;
  return fail(RF_INVALID_ARGUMENT, "images on CUDA must have sides up to 2^28, got %lld x %lld",
              static_cast<long long>(h), static_cast<long long>(w));
}

struct Tile {
  int64_t first_pixel;  // of the image the tile is in
  int y, x;             // where the tile begins in it
  int width;            // columns of it that the image has
};

__device__ __forceinline__ Tile tile_at(const Tiling& tiling, int64_t index, int tile_w) {
  const int64_t image = index / tiling.per_image;
  const int in_image = static_cast<int>(index - image * tiling.per_image);
  const int row = in_image / tiling.per_row, x = (in_image - row * tiling.per_row) * tile_w;
  return {image * tiling.h * tiling.w, row * kTileHeight, x,
          tiling.w - x < tile_w ? tiling.w - x : tile_w};
}

// dst[r * pitch + c] = convert(pixel (y + r, x + c)), `constant` where the border supplies it. The
// whole block takes part; neighbouring threads load neighbouring columns. Where a column comes from
// is found once for all rows. Call __syncthreads() before using dst.
template <typename T, typename W, typename Convert>
__device__ __forceinline__ void load_tile(const T* image, int h, int w, int y, int x, int rows,
                                          int cols, int pitch, Borders modes, W constant, W* dst,
                                          const Convert& convert) {
  constexpr int kAtOnce = 3;
  for (int first = threadIdx.x; first < cols; first += kAtOnce * kTileThreadsX) {
    int source_x[kAtOnce];
    bool wanted[kAtOnce], outside[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int c = first + k * kTileThreadsX;
      wanted[k] = c < cols;
      const int from = wanted[k] ? border_index_as<int>(x + c, w, modes.x) : 0;
      outside[k] = from < 0;
      source_x[k] = outside[k] ? 0 : from;
    }
    for (int r = threadIdx.y; r < rows; r += kTileThreadsY) {
      const int source_y = border_index_as<int>(y + r, h, modes.y);
      const T* row = image + static_cast<int64_t>(source_y < 0 ? 0 : source_y) * w;
      W* to = dst + r * pitch + first;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (!wanted[k]) continue;
        const W value = convert(row[source_x[k]]);  // always: a select is cheaper than a branch
        to[k * kTileThreadsX] = source_y < 0 || outside[k] ? constant : value;
      }
    }
  }
}

}  // namespace rf
