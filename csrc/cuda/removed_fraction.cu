// The fraction of features whose code says they are removed at a rate. One
// block per row; counts are integers, so the order of the additions does not
// matter.
#include <algorithm>
#include <cstdint>

#include "common/status.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256;

// kWords: rows are whole aligned words of four codes, of which a thread reads
// four.
template <bool kWords>
__global__ void __launch_bounds__(kThreads)
    removed_fraction_kernel(const uint8_t* __restrict__ codes,  // [n, f]
                            double* __restrict__ out,           // [n]
                            int64_t n, int64_t f, int limit) {
  RF_SHARED(unsigned long long, partial, [kThreads / 32]);
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    unsigned long long removed = 0;
    if constexpr (kWords) {
      const uint4* row = reinterpret_cast<const uint4*>(codes + i * f);
      for (int64_t k = threadIdx.x; k < f / 16; k += kThreads) {
        const uint4 four = row[k];
        const unsigned words[4] = {four.x, four.y, four.z, four.w};
        unsigned some = 0;
#pragma unroll
        for (int j = 0; j < 16; ++j)
          some += static_cast<int>((words[j / 4] >> (8 * (j % 4))) & 255u) <= limit;
        removed += some;
      }
    } else {
      for (int64_t k = threadIdx.x; k < f; k += kThreads) removed += codes[i * f + k] <= limit;
    }
    for (int step = 16; step > 0; step /= 2) {
      removed += __shfl_xor_sync(0xffffffffu, removed, step);
    }
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = removed;
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned long long total = 0;
      for (int warp = 0; warp < kThreads / 32; ++warp) total += partial[warp];
      out[i] = static_cast<double>(total) / static_cast<double>(f);
    }
    __syncthreads();
  }
}

}  // namespace

extern "C" rf_status rf_removed_fraction(const uint8_t* codes, double* out, int64_t n, int64_t f,
                                         int64_t rate_index, rf_stream stream) {
  if (n == 0) return RF_OK;
  if (f == 0) return rf::fail(RF_INVALID_ARGUMENT, "samples without features have no fraction");
  if (const rf_status bad = rf::check_not_null("removed_fraction", {codes, out})) return bad;
  const unsigned grid = static_cast<unsigned>(std::min<int64_t>(n, 1 << 20));
  const bool words = f % 16 == 0 && reinterpret_cast<uintptr_t>(codes) % 16 == 0;
  return rf::launch(words ? removed_fraction_kernel<true> : removed_fraction_kernel<false>, grid,
                    kThreads, 0, stream, codes, out, n, f, static_cast<int>(rate_index));
}
