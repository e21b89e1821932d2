// Rank codes: the bounds of all rates from one selection,
// then the number of rates at which a value stays.
#include "common/status.h"
#include "cpu/selection/row_removal.h"

extern "C" rf_status rf_rank_codes(const void* in, uint8_t* codes, rf_dtype dtype, int64_t n,
                                   int64_t f, const double* drops, int64_t ndrops, rf_rule rule,
                                   rf_order order, uint64_t seed, const int64_t* index,
                                   uint8_t* nan_flags, void* workspace, rf_stream) {
  if (n == 0 || f == 0) return RF_OK;
  if (const rf_status bad = rf::check_selection(f, drops, ndrops)) return bad;
  if (const rf_status bad = rf::check_not_null("rank_codes", {in, codes})) return bad;
  if (!rf::is_dtype(dtype)) return rf::fail_dtype("rank_codes", dtype);
  const rf::SelectedRows rows(dtype, n, f, ndrops);
  const rf::RemovalPlan plan(dtype, rule, order, f, drops, ndrops);
  rows.for_each(in, nan_flags, workspace, [&](auto& row, int64_t i, void*) {
    row.write_codes(plan, seed, index ? index[i] : i, codes + i * f);
  });
  return RF_OK;
}

extern "C" int64_t rf_rank_codes_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f,
                                                 int64_t ndrops) {
  return rf::SelectedRows(dtype, n, f, ndrops).workspace_bytes();
}
