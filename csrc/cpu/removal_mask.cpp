// Removal masks at one drop rate: find the row's bound, compare, then settle ties by hash.
#include "common/parallel.h"
#include "common/status.h"
#include "cpu/row_mask.h"

extern "C" rf_status rf_removal_mask(const void* in, uint8_t* mask, rf_dtype dtype, int64_t n,
                                     int64_t f, double drop, rf_rule rule, rf_order order, int keep,
                                     uint64_t seed, const int64_t* index, uint8_t* nan_flags,
                                     void* workspace, rf_stream) {
  if (n == 0 || f == 0) return RF_OK;
  if (const rf_status bad = rf::check_selection(f, &drop, 1)) return bad;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const rf::RemovalPlan<T> plan(rule, order, f, &drop, 1);
    const int64_t scratch = rf::RowRemoval<T>::scratch_bytes(f, 1);
    rf::parallel_for(n, rf::row_grain(f), [&](int64_t begin, int64_t end, int thread) {
      rf::RowRemoval<T> row(static_cast<unsigned char*>(workspace) + thread * scratch, f, 1);
      for (int64_t i = begin; i < end; ++i) {
        const bool nan = row.load_row(static_cast<const T*>(in) + i * f);
        if (nan_flags) nan_flags[i] = nan;
        rf::mask_row(row, plan, keep != 0, seed, index ? index[i] : i, mask + i * f);
      }
    });
  });
  return known ? RF_OK : rf::fail_dtype("removal_mask", dtype);
}

extern "C" int64_t rf_removal_mask_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f) {
  int64_t bytes = 0;
  rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    bytes = rf::RowRemoval<T>::scratch_bytes(f, 1) * rf::plan_threads(n, rf::row_grain(f));
  });
  return bytes;
}
