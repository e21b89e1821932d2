// Percentiles with NumPy's linear interpolation: all q from one selection per row.
#include <algorithm>

#include "common/status.h"
#include "cpu/selection/row_removal.h"

namespace {

// The ranks every row needs, ascending and without repeats, and where to find those of each q.
struct PercentilePlan {
  rf::Interpolation q[RF_MAX_RATES];
  int64_t ranks[2 * RF_MAX_RATES];
  int below[RF_MAX_RATES], above[RF_MAX_RATES];
  int rank_count = 0, count;

  PercentilePlan(rf_dtype dtype, const double* percentiles, int64_t nq, int64_t f, bool wide)
      : count(static_cast<int>(nq)) {
    for (int j = 0; j < count; ++j) {
      rf::dispatch_any(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        q[j] = rf::plan_percentile<T>(percentiles[j], f, wide);
      });
      ranks[rank_count++] = q[j].below;
      ranks[rank_count++] = q[j].above;
    }
    std::sort(ranks, ranks + rank_count);
    rank_count = static_cast<int>(std::unique(ranks, ranks + rank_count) - ranks);
    const auto find = [this](int64_t rank) {
      return static_cast<int>(std::lower_bound(ranks, ranks + rank_count, rank) - ranks);
    };
    for (int j = 0; j < count; ++j) below[j] = find(q[j].below), above[j] = find(q[j].above);
  }
};

// out[j]: the value of q[j], in T or, wide, in double.
template <typename T, typename V>
void interpolate(const PercentilePlan& plan, const rf::OrderStatistic<V>* at, T* out) {
  for (int j = 0; j < plan.count; ++j) {
    const V a = at[plan.below[j]].value, b = at[plan.above[j]].value;
    out[j] = rf::store<T>(static_cast<V>(rf::lerp<T, false>(a, b, plan.q[j])));
  }
}
template <typename T, typename V>
void interpolate_wide(const PercentilePlan& plan, const rf::OrderStatistic<V>* at, double* out) {
  for (int j = 0; j < plan.count; ++j) {
    out[j] = rf::lerp<T, true>(at[plan.below[j]].value, at[plan.above[j]].value, plan.q[j]);
  }
}

}  // namespace

extern "C" rf_status rf_percentile(const void* in, void* out, rf_dtype dtype, rf_dtype out_dtype,
                                   int64_t n, int64_t f, const double* q, int64_t nq,
                                   uint8_t* nan_flags, void* workspace, rf_stream) {
  if (const rf_status bad = rf::check_percentile(f, q, nq)) return bad;
  if (out_dtype != dtype && out_dtype != RF_FLOAT64)
    return rf::fail_dtype("percentile (out)", out_dtype);
  if (!rf::is_dtype(dtype)) return rf::fail_dtype("percentile", dtype);
  if (n == 0 || nq == 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("percentile", {in, out})) return bad;
  const rf::SelectedRows rows(dtype, n, f, nq);
  const bool wide = out_dtype == RF_FLOAT64;
  const PercentilePlan plan(dtype, q, nq, f, wide);
  rows.for_each(in, nan_flags, workspace, [&](auto& row, int64_t i, void*) {
    using V = typename std::decay_t<decltype(row)>::value_type;
    rf::OrderStatistic<V> at[2 * RF_MAX_RATES];
    row.select(plan.ranks, plan.rank_count, at);
    rf::dispatch_any(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<rf::compute_t<T>, V>) {
        wide ? interpolate_wide<T>(plan, at, static_cast<double*>(out) + i * nq)
             : interpolate<T>(plan, at, static_cast<T*>(out) + i * nq);
      }
    });
  });
  return RF_OK;
}

extern "C" int64_t rf_percentile_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f, int64_t nq) {
  return rf::SelectedRows(dtype, n, f, nq).workspace_bytes();
}
