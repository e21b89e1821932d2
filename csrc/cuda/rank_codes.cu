// Rank codes of all drop rates. One block per row: one selection for all rates,
// then a binary search among the nested bounds for each feature.
#include <algorithm>

#include "common/status.h"
#include "cuda/selection/row_removal.h"
#include "cuda/support/launch.h"

namespace {

// kRates bounds the shared memory: 9 rates need 17.5 KB, 254 rates 35 KB. Four blocks on an SM:
// left to itself the compiler makes room for five with doubles, and spills registers.
template <typename T, int kRates>
__global__ void __launch_bounds__(rf::kSelectThreads, 4)
    rank_codes_kernel(const T* __restrict__ in,     // [n, f]
                      uint8_t* __restrict__ codes,  // [n, f]
                      int64_t n, int64_t f, rf::RemovalParams params,
                      const int64_t* __restrict__ index,  // [n] or null
                      uint8_t* __restrict__ nan_flags) {  // [n] or null
  using Removal = rf::RowRemoval<T, kRates>;
  RF_SHARED(Removal, removal, [1]);
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    const T* row = in + i * f;
    const int64_t sample = index ? index[i] : i;
    const unsigned wrong = removal[0].find_bounds(row, f, params, sample, nan_flags != nullptr);
    if (nan_flags && threadIdx.x == 0) nan_flags[i] = static_cast<uint8_t>(wrong);
    rf::write_bytes(row, codes + i * f, static_cast<uint32_t>(f), [&](uint32_t k, T value) {
      return static_cast<uint8_t>(removal[0].code(params, rf::order_key(value), k, sample));
    });
  }
}

}  // namespace

extern "C" rf_status rf_rank_codes(const void* in, uint8_t* codes, rf_dtype dtype, int64_t n,
                                   int64_t f, const double* drops, int64_t ndrops, rf_rule rule,
                                   rf_order order, uint64_t seed, const int64_t* index,
                                   uint8_t* nan_flags, void*, rf_stream stream) {
  if (n == 0 || f == 0) return RF_OK;
  if (const rf_status bad = rf::check_selection(f, drops, ndrops)) return bad;
  if (const rf_status bad = rf::check_not_null("rank_codes", {in, codes})) return bad;
  const rf::RemovalParams params = rf::removal_params(rule, order, seed, drops, ndrops);
  const unsigned grid = static_cast<unsigned>(std::min(n, rf::kMaxRowGrid));
  rf_status status = RF_OK;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel =
        ndrops <= 16 ? rank_codes_kernel<T, 16> : rank_codes_kernel<T, RF_MAX_RATES>;
    status = rf::launch(kernel, grid, rf::kSelectThreads, 0, stream, static_cast<const T*>(in),
                        codes, n, f, params, index, nan_flags);
  });
  return known ? status : rf::fail_dtype("rank_codes", dtype);
}

extern "C" int64_t rf_rank_codes_workspace_bytes(rf_dtype, int64_t, int64_t, int64_t) { return 0; }
