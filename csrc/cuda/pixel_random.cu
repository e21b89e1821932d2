// Uniform random maps. One thread per Philox block,
// that is, per four consecutive features; writes only.
#include <algorithm>

#include "common/philox.h"
#include "common/status.h"
#include "cuda/support/launch.h"
#include "cuda/support/vectors.h"

namespace {

constexpr int kThreads = 256;

// A slice of rows. kFours: rows are whole aligned fours.
template <bool kFours>
__global__ void __launch_bounds__(kThreads)
    pixel_random_kernel(float* __restrict__ out,  // [rows, ...], f numbers of each
                        uint32_t items, uint32_t f, uint32_t blocks, uint64_t seed,
                        int64_t first_sample, int64_t first_block,
                        const int64_t* __restrict__ index) {  // [rows] or null
  const uint32_t stride = gridDim.x * kThreads;
  for (uint32_t item = blockIdx.x * kThreads + threadIdx.x; item < items; item += stride) {
    const uint32_t i = item / blocks, block = item - i * blocks;
    const rf::Philox4 words = rf::philox_block(seed, index ? index[i] : first_sample + i,
                                               first_block + block, rf::kDomainPixelRandom);
    rf::Four<float> four;
#pragma unroll
    for (int k = 0; k < 4; ++k) four.v[k] = rf::uniform_from_word(words.w[k]);
    if constexpr (kFours) {
      reinterpret_cast<rf::Four<float>*>(out)[item] = four;
    } else {
      float* to = out + static_cast<int64_t>(i) * f + 4 * block;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (4 * block + k < f) to[k] = four.v[k];
      }
    }
  }
}

}  // namespace

extern "C" rf_status rf_pixel_random(float* out, int64_t n, int64_t f, uint64_t seed,
                                     const int64_t* index, rf_stream stream) {
  if (n <= 0 || f <= 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("pixel_random", {out})) return bad;
  const bool fours = f % 4 == 0 && rf::is_aligned_for_fours(out);
  const auto kernel = fours ? pixel_random_kernel<true> : pixel_random_kernel<false>;
  const auto start = [&](int64_t row, int64_t rows, int64_t block, int64_t blocks) {
    const int64_t items = rows * blocks;
    const int64_t grid = std::min<int64_t>((items + kThreads - 1) / kThreads, 1 << 20);
    return rf::launch(kernel, static_cast<unsigned>(grid), kThreads, 0, stream,
                      out + row * f + 4 * block, items, std::min(f - 4 * block, 4 * blocks), blocks,
                      seed, row, block, index ? index + row : nullptr);
  };
  return rf::for_slices(n, (f + 3) / 4, start);
}
