// Removal masks at one drop rate: find the row's bound, compare, then settle ties by hash.
#include "common/status.h"
#include "cpu/selection/row_removal.h"

extern "C" rf_status rf_removal_mask(const void* in, uint8_t* mask, rf_dtype dtype, int64_t n,
                                     int64_t f, double drop, rf_rule rule, rf_order order, int keep,
                                     uint64_t seed, const int64_t* index, uint8_t* nan_flags,
                                     void* workspace, rf_stream) {
  if (n == 0 || f == 0) return RF_OK;
  if (const rf_status bad = rf::check_selection(f, &drop, 1)) return bad;
  if (const rf_status bad = rf::check_not_null("removal_mask", {in, mask})) return bad;
  if (!rf::is_dtype(dtype)) return rf::fail_dtype("removal_mask", dtype);
  const rf::SelectedRows rows(dtype, n, f, 1);
  const rf::RemovalPlan plan(dtype, rule, order, f, &drop, 1);
  rows.for_each(in, nan_flags, workspace, [&](auto& row, int64_t i, void*) {
    row.write_mask(plan, keep != 0, seed, index ? index[i] : i, mask + i * f);
  });
  return RF_OK;
}

extern "C" int64_t rf_removal_mask_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f) {
  return rf::SelectedRows(dtype, n, f, 1).workspace_bytes();
}
