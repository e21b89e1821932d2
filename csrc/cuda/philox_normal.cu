// Standard normals keyed by (seed, sample, draw, feature). One thread per
// Philox block, that is, per four consecutive features of a sample; threads
// stride over all blocks of all samples. Reads one sample id, writes four
// floats.
#include <algorithm>

#include "common/philox.h"
#include "common/philox_normal.h"
#include "cuda/support/launch.h"
#include "cuda/support/vectors.h"

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxGrid = 1 << 20;

// A slice of rows. kFours: rows are whole aligned fours.
template <bool kFours>
__global__ void __launch_bounds__(kThreads)
    philox_normal_kernel(const int64_t* __restrict__ index,  // [rows]
                         float* __restrict__ out,            // [rows, ...], `features` of each
                         uint32_t items, uint32_t features, uint32_t blocks, uint64_t seed,
                         int64_t first_block, rf::PhiloxDomain domain) {
  const uint32_t stride = gridDim.x * kThreads;
  for (uint32_t item = blockIdx.x * kThreads + threadIdx.x; item < items; item += stride) {
    const uint32_t i = item / blocks, block = item - i * blocks;
    rf::Four<float> four;
    rf::normals_from_block(rf::philox_block(seed, index[i], first_block + block, domain), four.v);
    if constexpr (kFours) {
      reinterpret_cast<rf::Four<float>*>(out)[item] = four;
    } else {
      float* to = out + static_cast<int64_t>(i) * features + 4 * block;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (4 * block + k < features) to[k] = four.v[k];
      }
    }
  }
}

}  // namespace

extern "C" rf_status rf_philox_normal(const int64_t* index, float* out, int64_t n, int64_t features,
                                      int64_t seed, int64_t draw, int64_t domain,
                                      rf_stream stream) {
  const rf_status status = rf::check_philox_normal(index, out, n, features, draw, domain);
  if (status != RF_OK || n == 0 || features == 0) return status;
  const int64_t per_row = rf::normal_blocks(features);
  const bool fours = features % 4 == 0 && rf::is_aligned_for_fours(out);
  const auto kernel = fours ? philox_normal_kernel<true> : philox_normal_kernel<false>;
  const auto start = [&](int64_t row, int64_t rows, int64_t block, int64_t blocks) {
    const int64_t items = rows * blocks;
    const int64_t grid = std::min((items + kThreads - 1) / kThreads, kMaxGrid);
    return rf::launch(
        kernel, dim3(static_cast<unsigned>(grid)), dim3(kThreads), 0, stream, index + row,
        out + row * features + 4 * block, items, std::min(features - 4 * block, 4 * blocks), blocks,
        static_cast<uint64_t>(seed), draw * per_row + block, static_cast<rf::PhiloxDomain>(domain));
  };
  return rf::for_slices(n, per_row, start);
}
