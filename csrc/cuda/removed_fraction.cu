// The fraction of features whose code says they are removed at a rate. One block per row; counts
// are integers, so the order of the additions does not matter.
#include <algorithm>
#include <cstdint>

#include "common/status.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256;

__global__ void removed_fraction_kernel(const uint8_t* __restrict__ codes,  // [n, f]
                                        double* __restrict__ out,           // [n]
                                        int64_t n, int64_t f, int limit) {
  RF_SHARED(unsigned long long, total, [1]);
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    if (threadIdx.x == 0) total[0] = 0;
    __syncthreads();
    unsigned long long removed = 0;
    for (int64_t k = threadIdx.x; k < f; k += kThreads) removed += codes[i * f + k] <= limit;
    atomicAdd(&total[0], removed);
    __syncthreads();
    if (threadIdx.x == 0) out[i] = static_cast<double>(total[0]) / static_cast<double>(f);
    __syncthreads();
  }
}

}  // namespace

extern "C" rf_status rf_removed_fraction(const uint8_t* codes, double* out, int64_t n, int64_t f,
                                         int64_t rate_index, rf_stream stream) {
  if (n == 0) return RF_OK;
  if (f == 0) return rf::fail(RF_INVALID_ARGUMENT, "samples without features have no fraction");
  const unsigned grid = static_cast<unsigned>(std::min<int64_t>(n, 1 << 20));
  return rf::launch(removed_fraction_kernel, grid, kThreads, 0, stream, codes, out, n, f,
                    static_cast<int>(rate_index));
}
