// Uniform random maps. One thread per Philox block,
// that is, per four consecutive features; writes only.
#include <algorithm>

#include "common/philox.h"
#include "common/status.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256;

__global__ void pixel_random_kernel(float* __restrict__ out,  // [n, f]
                                    int64_t n, int64_t f, int64_t blocks, uint64_t seed,
                                    const int64_t* __restrict__ index) {  // [n] or null
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < n * blocks;
       item += stride) {
    const int64_t i = item / blocks, block = item % blocks;
    const rf::Philox4 words =
        rf::philox_block(seed, index ? index[i] : i, block, rf::kDomainPixelRandom);
    float* four = out + i * f + 4 * block;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (4 * block + k < f) four[k] = rf::uniform_from_word(words.w[k]);
    }
  }
}

}  // namespace

extern "C" rf_status rf_pixel_random(float* out, int64_t n, int64_t f, uint64_t seed,
                                     const int64_t* index, rf_stream stream) {
  if (n == 0 || f == 0) return RF_OK;
  const int64_t blocks = (f + 3) / 4;
  const int64_t grid = std::min<int64_t>((n * blocks + kThreads - 1) / kThreads, 1 << 20);
  return rf::launch(pixel_random_kernel, static_cast<unsigned>(grid), kThreads, 0, stream, out, n,
                    f, blocks, seed, index);
}
