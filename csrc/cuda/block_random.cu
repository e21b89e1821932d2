// Masks of one random rectangle per image. One block per image: thread 0 draws
// the rectangle, all write the mask.
#include <algorithm>

#include "common/random_block.h"
#include "common/status.h"
#include "cuda/support/launch.h"
#include "cuda/support/vectors.h"

namespace {

constexpr int kThreads = 256;

// A thread makes four pixels of the image in a row, with one division. kFours:
// they are stored together.
template <bool kFours>
__global__ void __launch_bounds__(kThreads)
    block_random_kernel(uint8_t* __restrict__ mask,  // [n, h, w]
                        int64_t n, int64_t h, int64_t w, double drop, uint64_t seed,
                        const int64_t* __restrict__ index) {  // [n] or null
  RF_SHARED(rf::Rectangle, rectangle, [1]);
  const int64_t pixels = h * w;
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    if (threadIdx.x == 0) rectangle[0] = rf::random_block(h, w, drop, seed, index ? index[i] : i);
    __syncthreads();
    const rf::Rectangle r = rectangle[0];
    uint8_t* image = mask + i * pixels;
    for (int64_t k = 4 * static_cast<int64_t>(threadIdx.x); k < pixels; k += 4 * kThreads) {
      // A 64-bit division is a long routine: images above 2^32 pixels are rare.
      const int64_t row =
          pixels >> 32 ? k / w : static_cast<uint32_t>(k) / static_cast<uint32_t>(w);
      int64_t y = row - r.top, x = k - row * w;
      rf::Four<uint8_t> four;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        four.v[j] = y >= 0 && y < r.height && x >= r.left && x < r.left + r.width;
        if (++x == w) x = 0, ++y;
      }
      if constexpr (kFours) {
        *reinterpret_cast<rf::Four<uint8_t>*>(image + k) = four;
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (k + j < pixels) image[k + j] = four.v[j];
        }
      }
    }
    __syncthreads();
  }
}

}  // namespace

extern "C" rf_status rf_block_random(uint8_t* mask, int64_t n, int64_t h, int64_t w, double drop,
                                     uint64_t seed, const int64_t* index, rf_stream stream) {
  if (!(drop >= 0.0 && drop <= 1.0))
    return rf::fail(RF_INVALID_ARGUMENT, "drop must be in [0, 1], got %g", drop);
  if (n <= 0 || h <= 0 || w <= 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("block_random", {mask})) return bad;
  const unsigned grid = static_cast<unsigned>(std::min<int64_t>(n, 1 << 20));
  const bool fours = h * w % 4 == 0 && rf::is_aligned_for_fours(mask);
  return rf::launch(fours ? block_random_kernel<true> : block_random_kernel<false>, grid, kThreads,
                    0, stream, mask, n, h, w, drop, seed, index);
}
