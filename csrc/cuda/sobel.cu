// Sobel on CUDA: one fused kernel.
#include "common/filter_args.h"
#include "cuda/support/launch.h"
#include "cuda/support/tiles.h"

namespace {

using rf::kTileHeight;
using rf::kTileThreadsX;
using rf::kTileThreadsY;
using rf::kTileWidth;

constexpr int kThreads = kTileThreadsX * kTileThreadsY;

// [-1 0 1] along kAxis (0 = rows, 1 = columns), then [1 2 1] along the other, of one tile per block
// of 32 x 8 threads; a warp takes a row. Reads every pixel once from global memory (plus a halo of
// one, cached) and writes it once. As in SciPy the smoothing sees the border of the derivative:
// with RF_CONSTANT, cval.
template <typename T, int kAxis>
__global__ void __launch_bounds__(kThreads)
    sobel_kernel(const T* __restrict__ in,  // [n, h, w]
                 T* __restrict__ out,       // [n, h, w]
                 const rf::Tiling tiling, rf::Borders modes, rf::compute_t<T> cval) {
  using C = rf::compute_t<T>;
  constexpr int kRows = kTileHeight + 2, kCols = kTileWidth<C> + 2;
  // The derivative exists inside the tile along kAxis, and one pixel further along the other axis.
  constexpr int kDerivedRows = kAxis == 0 ? kTileHeight : kRows,
                kDerivedCols = kAxis == 0 ? kCols : kCols - 2;
  constexpr int kAlong = kAxis == 0 ? kCols : 1;            // step in `source` along the derivative
  constexpr int kAcross = kAxis == 0 ? 1 : kDerivedCols;    // step in `derived` along the smoothing
  const rf_border across = kAxis == 0 ? modes.x : modes.y;  // the border that the smoothing meets
  RF_SHARED(C, source, [kRows * kCols]);
  RF_SHARED(C, derived, [kDerivedRows * kDerivedCols]);
  for (int64_t t = blockIdx.x; t < tiling.total; t += gridDim.x) {
    const rf::Tile tile = rf::tile_at(tiling, t, kTileWidth<C>);
    C* tile_source = source;
    const int derived_cols = tile.width + kDerivedCols - kTileWidth<C>;
    rf::load_tile(in + tile.first_pixel, tiling.h, tiling.w, tile.y - 1, tile.x - 1, kRows,
                  tile.width + 2, kCols, modes, cval, tile_source, [](T v) { return rf::load(v); });
    __syncthreads();
    for (int r = threadIdx.y; r < kDerivedRows; r += kTileThreadsY) {
      for (int c = threadIdx.x; c < derived_cols; c += kTileThreadsX) {
        const int position = kAxis == 0 ? tile.x + c - 1 : tile.y + r - 1;
        const bool outside = position < 0 || position >= (kAxis == 0 ? tiling.w : tiling.h);
        const C* before = source + r * kCols + c;
        derived[r * kDerivedCols + c] =
            outside && across == RF_CONSTANT ? cval : before[2 * kAlong] - before[0];
      }
    }
    __syncthreads();
    for (int r = threadIdx.y; r < kTileHeight && tile.y + r < tiling.h; r += kTileThreadsY) {
      T* row = out + tile.first_pixel + static_cast<int64_t>(tile.y + r) * tiling.w + tile.x;
      for (int c = threadIdx.x; c < tile.width; c += kTileThreadsX) {
        const C* before = derived + r * kDerivedCols + c;
        row[c] = rf::store<T>((before[0] + before[2 * kAcross]) + C(2) * before[kAcross]);
      }
    }
    // The next tile overwrites `source`, last read before the barrier above, and then `derived`,
    // which its own first barrier protects.
  }
}

}  // namespace

extern "C" rf_status rf_sobel(const void* in, void* out, rf_dtype dtype, int64_t n, int64_t h,
                              int64_t w, int axis, rf_border mode_y, rf_border mode_x, double cval,
                              rf_stream stream) {
  if (const rf_status bad = rf::check_images(in, out, n, h, w)) return bad;
  const rf::Borders modes{mode_y, mode_x};
  if (const rf_status bad = rf::check_borders(modes)) return bad;
  if (axis != 0 && axis != 1)
    return rf::fail(RF_INVALID_ARGUMENT, "axis must be 0 or 1, got %d", axis);
  if (const rf_status bad = rf::check_tileable(h, w)) return bad;
  if (n * h * w == 0) return RF_OK;
  rf_status status = RF_OK;
  const bool known = rf::dispatch_float(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = rf::compute_t<T>;
    const rf::Tiling tiling(n, h, w, kTileWidth<C>);
    const auto kernel = axis == 0 ? sobel_kernel<T, 0> : sobel_kernel<T, 1>;
    status = rf::launch(kernel, tiling.grid(), dim3(kTileThreadsX, kTileThreadsY), 0, stream,
                        static_cast<const T*>(in), static_cast<T*>(out), tiling, modes,
                        static_cast<C>(cval));
  });
  return known ? status : rf::fail_dtype("sobel", dtype);
}
