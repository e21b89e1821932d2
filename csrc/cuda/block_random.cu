// Masks of one random rectangle per image. One block per image: thread 0 draws the rectangle, all
// write the mask.
#include <algorithm>

#include "common/random_block.h"
#include "common/status.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256;

__global__ void block_random_kernel(uint8_t* __restrict__ mask,  // [n, h, w]
                                    int64_t n, int64_t h, int64_t w, double drop, uint64_t seed,
                                    const int64_t* __restrict__ index) {  // [n] or null
  RF_SHARED(rf::Rectangle, rectangle, [1]);
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    if (threadIdx.x == 0) rectangle[0] = rf::random_block(h, w, drop, seed, index ? index[i] : i);
    __syncthreads();
    const rf::Rectangle r = rectangle[0];
    for (int64_t k = threadIdx.x; k < h * w; k += kThreads) {
      const int64_t y = k / w - r.top, x = k % w - r.left;
      mask[i * h * w + k] = y >= 0 && y < r.height && x >= 0 && x < r.width;
    }
    __syncthreads();
  }
}

}  // namespace

extern "C" rf_status rf_block_random(uint8_t* mask, int64_t n, int64_t h, int64_t w, double drop,
                                     uint64_t seed, const int64_t* index, rf_stream stream) {
  if (!(drop >= 0.0 && drop <= 1.0))
    return rf::fail(RF_INVALID_ARGUMENT, "drop must be in [0, 1], got %g", drop);
  if (n == 0 || h == 0 || w == 0) return RF_OK;
  const unsigned grid = static_cast<unsigned>(std::min<int64_t>(n, 1 << 20));
  return rf::launch(block_random_kernel, grid, kThreads, 0, stream, mask, n, h, w, drop, seed,
                    index);
}
