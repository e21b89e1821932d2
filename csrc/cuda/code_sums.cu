// Sums of the values of each code. One block per row: the largest value by one pass, then integer
// sums in shared memory, which do not depend on the order of the additions.
#include <algorithm>
#include <cstdint>

#include "common/code_sums.h"
#include "common/dtype.h"
#include "common/status.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256, kCodes = 256, kWarp = 32;

// Non-negative doubles order as their bits do, and NaN is above infinity.
__device__ unsigned long long bits_of(double v) {
  unsigned long long bits;
  memcpy(&bits, &v, sizeof(bits));
  return bits;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    code_sums_kernel(const T* __restrict__ in,           // [n, f]
                     const uint8_t* __restrict__ codes,  // [n, f]
                     double* __restrict__ out,           // [n, count]
                     int64_t n, int64_t f, int count) {
  RF_SHARED(unsigned long long, high, [kCodes]);
  RF_SHARED(unsigned long long, low, [kCodes]);
  RF_SHARED(unsigned long long, largest, [1]);
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    for (int c = threadIdx.x; c < kCodes; c += kThreads) high[c] = low[c] = 0;
    if (threadIdx.x == 0) largest[0] = 0;
    __syncthreads();
    unsigned long long mine = 0;
    for (int64_t k = threadIdx.x; k < f; k += kThreads) {
      const unsigned long long bits = bits_of(fabs(static_cast<double>(rf::load(in[i * f + k]))));
      mine = bits > mine ? bits : mine;
    }
    for (int half = kWarp / 2; half > 0; half /= 2) {
      const unsigned long long other = __shfl_down_sync(0xffffffffu, mine, half);
      mine = other > mine ? other : mine;
    }
    if (threadIdx.x % kWarp == 0) atomicMax(&largest[0], mine);
    __syncthreads();
    double top;
    const unsigned long long bits = largest[0];
    memcpy(&top, &bits, sizeof(top));
    const bool finite = top - top == 0;
    const rf::FixedPoint point(finite ? top : 0.0, f);
    for (int64_t k = threadIdx.x; finite && k < f; k += kThreads) {
      int64_t upper, lower;
      point.split(static_cast<double>(rf::load(in[i * f + k])), &upper, &lower);
      const int code = codes[i * f + k];
      atomicAdd(&high[code], static_cast<unsigned long long>(upper));
      if (lower != 0) atomicAdd(&low[code], static_cast<unsigned long long>(lower));
    }
    __syncthreads();
    for (int c = threadIdx.x; c < count; c += kThreads) {
      out[i * count + c] =
          finite ? point.join(static_cast<int64_t>(high[c]), static_cast<int64_t>(low[c]))
                 : top - top;
    }  // and the thread that read a sum is the one that sets it to zero for the next row
  }
}

}  // namespace

extern "C" rf_status rf_code_sums(const void* in, const uint8_t* codes, double* out, rf_dtype dtype,
                                  int64_t n, int64_t f, int64_t count, rf_stream stream) {
  if (count < 1 || count > kCodes) {
    return rf::fail(RF_INVALID_ARGUMENT, "count must be 1 to %d, got %lld", kCodes,
                    static_cast<long long>(count));
  }
  if (n == 0) return RF_OK;
  const unsigned grid = static_cast<unsigned>(std::min<int64_t>(n, 1 << 20));
  rf_status status = RF_OK;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = rf::launch(code_sums_kernel<T>, grid, kThreads, 0, stream, static_cast<const T*>(in),
                        codes, out, n, f, static_cast<int>(count));
  });
  return known ? status : rf::fail_dtype("code_sums", dtype);
}
