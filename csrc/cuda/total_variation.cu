// Total variation on CUDA: one pass over the pixels gives a partial result per band of 8 rows, then
// a small kernel adds the bands of each image. The order of sums is that of
// common/total_variation.h.
#include <algorithm>

#include "common/total_variation.h"
#include "cuda/support/launch.h"

namespace {

using rf::kTvBandRows;
using rf::kTvLanes;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kTvLanes;
constexpr int64_t kMaxGrid = 0x7fffffff;

// A warp per band, a lane per column modulo 32; a block's warps take neighbouring bands. Each pixel
// is loaded as the lower neighbour of the one above and kept in a register; its right
// neighbour is in the L1 cache. Reads 9/8 of the pixels, writes three doubles per band.
template <typename T, bool kIsotropic, bool kRange>
__global__ void __launch_bounds__(kThreads, 4)
    tv_bands_kernel(const T* __restrict__ in,              // [n, h, w]
                    rf::TvPartial* __restrict__ partials,  // [n, bands]
                    int64_t total, int bands, int64_t h, int64_t w) {
  using C = rf::compute_t<T>;
  const int lane = threadIdx.x % kTvLanes;
  for (int64_t item = blockIdx.x * int64_t{kWarps} + threadIdx.x / kTvLanes; item < total;
       item += int64_t{gridDim.x} * kWarps) {
    const int64_t image = item / bands;
    const int64_t y = (item - image * bands) * kTvBandRows;
    const int rows_left = h - y < kTvBandRows + 1 ? static_cast<int>(h - y) : kTvBandRows + 1;
    const T* band = in + (image * h + y) * w;
    double sum = 0.0;
    C low = rf::load(band[0]), high = low;
    for (int64_t x = lane; x < w; x += kTvLanes) {
      const int right = x + 1 < w ? 1 : 0;  // beyond the edge the difference is 0
      const T* pixel = band + x;
      C value = rf::load(*pixel);
#pragma unroll
      for (int r = 0; r < kTvBandRows; ++r) {
        if (r >= rows_left) break;
        const C next = rf::load(pixel[right]);
        if (r + 1 < rows_left) pixel += w;
        const C below = rf::load(*pixel);
        sum += rf::tv_term<kIsotropic, C>(next - value, below - value);
        if constexpr (kRange) {
          low = value < low ? value : low;
          high = value > high ? value : high;
        }
        value = below;
      }
    }
    for (int half = kTvLanes / 2; half > 0; half /= 2) {
      sum += __shfl_down_sync(0xffffffffu, sum, half);
      if constexpr (kRange) {
        const C other_low = __shfl_down_sync(0xffffffffu, low, half);
        const C other_high = __shfl_down_sync(0xffffffffu, high, half);
        low = other_low < low ? other_low : low;
        high = other_high > high ? other_high : high;
      }
    }
    if (lane == 0) partials[item] = {sum, static_cast<double>(low), static_cast<double>(high)};
  }
}

// A thread per image adds its bands, from top to bottom, and normalises.
__global__ void __launch_bounds__(kThreads)
    tv_finish_kernel(const rf::TvPartial* __restrict__ partials,  // [n, bands]
                     double* __restrict__ out,                    // [n]
                     int64_t n, int64_t bands, int64_t h, int64_t w, rf_tv_kind kind,
                     rf_tv_norm norm) {
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * kThreads) {
    out[i] = h * w == 0 ? 0.0 : rf::tv_finish(partials + i * bands, bands, h, w, kind, norm);
  }
}

dim3 grid_of(int64_t items, int per_block) {
  return dim3(static_cast<unsigned>(std::min((items + per_block - 1) / per_block, kMaxGrid)));
}

}  // namespace

extern "C" rf_status rf_total_variation(const void* in, double* out, rf_dtype dtype, int64_t n,
                                        int64_t h, int64_t w, rf_tv_kind kind, rf_tv_norm norm,
                                        void* workspace, rf_stream stream) {
  if (const rf_status bad = rf::check_tv(in, out, n, h, w, kind, norm)) return bad;
  if (n == 0) return RF_OK;
  const int64_t bands = rf::tv_bands(h), total = n * bands;
  auto* partials = static_cast<rf::TvPartial*>(workspace);
  rf_status status = RF_OK;
  const bool known = rf::dispatch_tv(dtype, kind, norm, [&](auto tag, auto isotropic, auto range) {
    using T = typename decltype(tag)::type;
    if (h * w == 0) return;
    status = rf::launch(tv_bands_kernel<T, decltype(isotropic)::value, decltype(range)::value>,
                        grid_of(total, kWarps), kThreads, 0, stream, static_cast<const T*>(in),
                        partials, total, static_cast<int>(bands), h, w);
  });
  if (!known) return rf::fail_dtype("total_variation", dtype);
  if (status != RF_OK) return status;
  return rf::launch(tv_finish_kernel, grid_of(n, kThreads), kThreads, 0, stream, partials, out, n,
                    bands, h, w, kind, norm);
}

extern "C" int64_t rf_total_variation_workspace_bytes(rf_dtype, int64_t n, int64_t h, int64_t) {
  return n * rf::tv_bands(h) * static_cast<int64_t>(sizeof(rf::TvPartial));
}
