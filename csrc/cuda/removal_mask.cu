// Removal masks at one drop rate. One block per row: select, then compare.
// Reads a row once per digit (rows of few images come from the L2 cache after
// the first time) and once more to write the mask.
#include <algorithm>

#include "common/status.h"
#include "cuda/selection/row_removal.h"
#include "cuda/support/launch.h"

namespace {

template <typename T>
__global__ void __launch_bounds__(rf::kSelectThreads, 4)
    removal_mask_kernel(const T* __restrict__ in,    // [n, f]
                        uint8_t* __restrict__ mask,  // [n, f]
                        int64_t n, int64_t f, rf::RemovalParams params, int keep,
                        const int64_t* __restrict__ index,  // [n] or null
                        uint8_t* __restrict__ nan_flags) {  // [n] or null
  using Removal = rf::RowRemoval<T, 1>;
  RF_SHARED(Removal, removal, [1]);
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    const T* row = in + i * f;
    const int64_t sample = index ? index[i] : i;
    const unsigned wrong = removal[0].find_bounds(row, f, params, sample, nan_flags != nullptr);
    if (nan_flags && threadIdx.x == 0) nan_flags[i] = static_cast<uint8_t>(wrong);
    const rf::KeyBound<T> bound = removal[0].bounds[0];
    uint8_t* row_mask = mask + i * f;
    rf::write_bytes(row, row_mask, static_cast<uint32_t>(f), [&](uint32_t k, T value) {
      const bool removed =
          bound.removes(params.order, rf::order_key(value), k, params.seed, sample);
      return static_cast<uint8_t>(removed != (keep != 0));
    });
  }
}

}  // namespace

extern "C" rf_status rf_removal_mask(const void* in, uint8_t* mask, rf_dtype dtype, int64_t n,
                                     int64_t f, double drop, rf_rule rule, rf_order order, int keep,
                                     uint64_t seed, const int64_t* index, uint8_t* nan_flags, void*,
                                     rf_stream stream) {
  if (n == 0 || f == 0) return RF_OK;
  if (const rf_status bad = rf::check_selection(f, &drop, 1)) return bad;
  if (const rf_status bad = rf::check_not_null("removal_mask", {in, mask})) return bad;
  const rf::RemovalParams params = rf::removal_params(rule, order, seed, &drop, 1);
  const unsigned grid = static_cast<unsigned>(std::min(n, rf::kMaxRowGrid));
  rf_status status = RF_OK;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = rf::launch(removal_mask_kernel<T>, grid, rf::kSelectThreads, 0, stream,
                        static_cast<const T*>(in), mask, n, f, params, keep, index, nan_flags);
  });
  return known ? status : rf::fail_dtype("removal_mask", dtype);
}

extern "C" int64_t rf_removal_mask_workspace_bytes(rf_dtype, int64_t, int64_t) { return 0; }
