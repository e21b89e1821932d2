// Uniform random maps. One thread per Philox block,
// that is, per four consecutive features; writes only.
#include <algorithm>

#include "common/philox.h"
#include "common/status.h"
#include "cuda/support/launch.h"
#include "cuda/support/vectors.h"

namespace {

constexpr int kThreads = 256;

// Int: 32 bits where the numbers of all blocks fit. kFours: rows are whole
// aligned fours.
template <typename Int, bool kFours>
__global__ void __launch_bounds__(kThreads)
    pixel_random_kernel(float* __restrict__ out,  // [n, f]
                        Int items, Int f, Int blocks, uint64_t seed,
                        const int64_t* __restrict__ index) {  // [n] or null
  const Int stride = static_cast<Int>(gridDim.x) * kThreads;
  for (Int item = static_cast<Int>(blockIdx.x) * kThreads + threadIdx.x; item < items;
       item += stride) {
    const Int i = item / blocks, block = item - i * blocks;
    const rf::Philox4 words = rf::philox_block(seed, index ? index[i] : static_cast<int64_t>(i),
                                               static_cast<int64_t>(block), rf::kDomainPixelRandom);
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
  const int64_t blocks = (f + 3) / 4, items = n * blocks;
  const int64_t grid = std::min<int64_t>((items + kThreads - 1) / kThreads, 1 << 20);
  // The last addition of the stride must fit too.
  const bool narrow = items + (grid + 1) * kThreads < (int64_t{1} << 31) && f < (int64_t{1} << 30);
  const bool fours = f % 4 == 0 && rf::is_aligned_for_fours(out);
  const auto start = [&](auto kernel) {
    return rf::launch(kernel, static_cast<unsigned>(grid), kThreads, 0, stream, out, items, f,
                      blocks, seed, index);
  };
  if (narrow) {
    return start(fours ? pixel_random_kernel<uint32_t, true>
                       : pixel_random_kernel<uint32_t, false>);
  }
  return start(fours ? pixel_random_kernel<int64_t, true> : pixel_random_kernel<int64_t, false>);
}
