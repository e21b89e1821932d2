// Standard normals keyed by (seed, sample, draw, feature). One thread per Philox block, that is,
// per four consecutive features of a sample; threads stride over all blocks of all samples. Reads
// one sample id, writes four floats.
#include <algorithm>

#include "common/philox.h"
#include "common/philox_normal.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxGrid = 1 << 20;

__global__ void philox_normal_kernel(const int64_t* __restrict__ index,  // [n]
                                     float* __restrict__ out,            // [n, features]
                                     int64_t n, int64_t features, int64_t blocks, uint64_t seed,
                                     int64_t first_block, rf::PhiloxDomain domain) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < n * blocks;
       item += stride) {
    const int64_t i = item / blocks, block = item % blocks;
    float normals[4];
    rf::normals_from_block(rf::philox_block(seed, index[i], first_block + block, domain), normals);
    float* four = out + i * features + 4 * block;
    const int64_t left = features - 4 * block;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k < left) four[k] = normals[k];
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
  const int64_t grid = std::min((n * blocks + kThreads - 1) / kThreads, kMaxGrid);
  return rf::launch(philox_normal_kernel, dim3(static_cast<unsigned>(grid)), dim3(kThreads), 0,
                    stream, index, out, n, features, blocks, static_cast<uint64_t>(seed),
                    draw * blocks, static_cast<rf::PhiloxDomain>(domain));
}
