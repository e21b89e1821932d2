// Percentiles with NumPy's linear interpolation: all q from one selection per row.
#include <algorithm>

#include "common/parallel.h"
#include "common/status.h"
#include "cpu/row_removal.h"

namespace {

// The ranks every row needs, ascending and without repeats, and where to find those of each q.
template <typename T>
struct PercentilePlan {
  rf::Interpolation q[RF_MAX_RATES];
  int64_t ranks[2 * RF_MAX_RATES];
  int below[RF_MAX_RATES], above[RF_MAX_RATES];
  int rank_count = 0, count;

  PercentilePlan(const double* percentiles, int64_t nq, int64_t f, bool wide)
      : count(static_cast<int>(nq)) {
    for (int j = 0; j < count; ++j) {
      q[j] = rf::plan_percentile<T>(percentiles[j], f, wide);
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

}  // namespace

extern "C" rf_status rf_percentile(const void* in, void* out, rf_dtype dtype, rf_dtype out_dtype,
                                   int64_t n, int64_t f, const double* q, int64_t nq,
                                   uint8_t* nan_flags, void* workspace, rf_stream) {
  if (const rf_status bad = rf::check_percentile(f, q, nq)) return bad;
  if (out_dtype != dtype && out_dtype != RF_FLOAT64)
    return rf::fail_dtype("percentile (out)", out_dtype);
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using V = rf::compute_t<T>;
    const bool wide = out_dtype == RF_FLOAT64;
    const PercentilePlan<T> plan(q, nq, f, wide);
    const int64_t scratch = rf::RowRemoval<T>::scratch_bytes(f, nq);
    rf::parallel_for(n, rf::row_grain(f), [&](int64_t begin, int64_t end, int thread) {
      rf::RowRemoval<T> row(static_cast<unsigned char*>(workspace) + thread * scratch, f, nq);
      rf::OrderStatistic<V> at[2 * RF_MAX_RATES];
      for (int64_t i = begin; i < end; ++i) {
        const bool nan = row.load_row(static_cast<const T*>(in) + i * f);
        if (nan_flags) nan_flags[i] = nan;
        row.select(plan.ranks, plan.rank_count, at);
        for (int j = 0; j < plan.count; ++j) {
          const V a = at[plan.below[j]].value, b = at[plan.above[j]].value;
          if (wide) {
            static_cast<double*>(out)[i * nq + j] = rf::lerp<T, true>(a, b, plan.q[j]);
          } else {
            static_cast<T*>(out)[i * nq + j] =
                rf::store<T>(static_cast<V>(rf::lerp<T, false>(a, b, plan.q[j])));
          }
        }
      }
    });
  });
  return known ? RF_OK : rf::fail_dtype("percentile", dtype);
}

extern "C" int64_t rf_percentile_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f, int64_t nq) {
  int64_t bytes = 0;
  rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    bytes = rf::RowRemoval<T>::scratch_bytes(f, nq) * rf::plan_threads(n, rf::row_grain(f));
  });
  return bytes;
}
