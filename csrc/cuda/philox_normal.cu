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

// Int: 32 bits where the numbers of all blocks fit. kFours: rows are whole
// aligned fours.
template <typename Int, bool kFours>
__global__ void __launch_bounds__(kThreads)
    philox_normal_kernel(const int64_t* __restrict__ index,  // [n]
                         float* __restrict__ out,            // [n, features]
                         Int items, Int features, Int blocks, uint64_t seed, int64_t first_block,
                         rf::PhiloxDomain domain) {
  const Int stride = static_cast<Int>(gridDim.x) * kThreads;
  for (Int item = static_cast<Int>(blockIdx.x) * kThreads + threadIdx.x; item < items;
       item += stride) {
    const Int i = item / blocks, block = item - i * blocks;
    rf::Four<float> four;
    rf::normals_from_block(
        rf::philox_block(seed, index[i], first_block + static_cast<int64_t>(block), domain),
        four.v);
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
  const int64_t blocks = rf::normal_blocks(features);
  const int64_t items = n * blocks;
  const int64_t grid = std::min((items + kThreads - 1) / kThreads, kMaxGrid);
  // The last addition of the stride must fit too.
  const bool narrow =
      items + (grid + 1) * kThreads < (int64_t{1} << 31) && features < (int64_t{1} << 30);
  const bool fours = features % 4 == 0 && rf::is_aligned_for_fours(out);
  const auto start = [&](auto kernel) {
    return rf::launch(kernel, dim3(static_cast<unsigned>(grid)), dim3(kThreads), 0, stream, index,
                      out, items, features, blocks, static_cast<uint64_t>(seed), draw * blocks,
                      static_cast<rf::PhiloxDomain>(domain));
  };
  if (narrow) {
    return start(fours ? philox_normal_kernel<uint32_t, true>
                       : philox_normal_kernel<uint32_t, false>);
  }
  return start(fours ? philox_normal_kernel<int64_t, true> : philox_normal_kernel<int64_t, false>);
}
