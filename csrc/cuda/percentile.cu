// Percentiles with NumPy's linear interpolation. One block per row: one
// selection for all q; thread j interpolates q j.
#include <algorithm>

#include "common/status.h"
#include "cuda/selection/row_removal.h"
#include "cuda/support/launch.h"

namespace {

struct PercentileParams {
  int count;
  double q[RF_MAX_RATES];
};

// Three blocks on an SM: with more, registers would be spilled.
template <typename T, int kRates, bool wide>
__global__ void __launch_bounds__(rf::kSelectThreads, 3)
    percentile_kernel(const T* __restrict__ in,                               // [n, f]
                      std::conditional_t<wide, double, T>* __restrict__ out,  // [n, nq]
                      int64_t n, int64_t f, PercentileParams params,
                      uint8_t* __restrict__ nan_flags) {  // [n] or null
  using Selection = rf::RowSelection<T, 2 * kRates, (kRates > 1 ? 16 : 2)>;
  RF_SHARED(Selection, selection, [1]);
  RF_SHARED(int16_t, below, [kRates]);
  Selection& s = selection[0];
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    if (threadIdx.x == 0) {  // the row before reads other parts of `s` by now
      int count = 0;
      for (int j = 0; j < params.count; ++j) {
        const rf::Interpolation p = rf::plan_percentile<T>(params.q[j], f, wide);
        const int at = rf::append_rank(s.left, &count, static_cast<uint32_t>(p.below));
        if (i == blockIdx.x) below[j] = static_cast<int16_t>(at);
        rf::append_rank(s.left, &count, static_cast<uint32_t>(p.above));
      }
      s.count = count;
    }
    __syncthreads();
    const bool nan = select_row(s, in + i * f, f, false, RF_MORF, 0, 0, nan_flags != nullptr);
    if (nan_flags && threadIdx.x == 0) nan_flags[i] = nan;
    for (int j = threadIdx.x; j < params.count; j += rf::kSelectThreads) {
      const rf::Interpolation p = rf::plan_percentile<T>(params.q[j], f, wide);
      const auto a = rf::key_value<T>(s.key[below[j]]);
      const auto b = rf::key_value<T>(
          s.key[below[j] + (p.above != p.below)]);  // ranks ascend without gaps here
      if constexpr (wide) {
        out[i * params.count + j] = rf::lerp<T, true>(a, b, p);
      } else {
        out[i * params.count + j] =
            rf::store<T>(static_cast<rf::compute_t<T>>(rf::lerp<T, false>(a, b, p)));
      }
    }
  }
}

}  // namespace

extern "C" rf_status rf_percentile(const void* in, void* out, rf_dtype dtype, rf_dtype out_dtype,
                                   int64_t n, int64_t f, const double* q, int64_t nq,
                                   uint8_t* nan_flags, void*, rf_stream stream) {
  if (const rf_status bad = rf::check_percentile(f, q, nq)) return bad;
  if (out_dtype != dtype && out_dtype != RF_FLOAT64)
    return rf::fail_dtype("percentile (out)", out_dtype);
  if (out_dtype != RF_FLOAT64 && (nq > 1 || dtype == RF_UINT8 || dtype == RF_BOOL)) {
    return rf::fail(RF_INVALID_ARGUMENT,
                    "percentile: only one percentile of a float dtype can have that dtype");
  }
  if (n == 0 || nq == 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("percentile", {in, out})) return bad;
  PercentileParams params{static_cast<int>(nq), {}};
  std::copy(q, q + nq, params.q);
  const unsigned grid = static_cast<unsigned>(std::min(n, rf::kMaxRowGrid));
  rf_status status = RF_OK;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto start = [&](auto kernel, auto* typed_out) {
      status = rf::launch(kernel, grid, rf::kSelectThreads, 0, stream, static_cast<const T*>(in),
                          typed_out, n, f, params, nan_flags);
    };
    if (out_dtype == RF_FLOAT64) {
      start(nq <= 8 ? percentile_kernel<T, 8, true> : percentile_kernel<T, RF_MAX_RATES, true>,
            static_cast<double*>(out));
    } else if constexpr (sizeof(T) != 1 && sizeof(T) != 8) {
      start(percentile_kernel<T, 1, false>, static_cast<T*>(out));
    }
  });
  return known ? status : rf::fail_dtype("percentile", dtype);
}

extern "C" int64_t rf_percentile_workspace_bytes(rf_dtype, int64_t, int64_t, int64_t) { return 0; }
