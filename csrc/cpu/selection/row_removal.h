// Which features of one row are removed: from rates and a rule to bounds on the values, and ties by
// hash. Rows are compared as float or double, whatever they are stored as.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/selection.h"
#include "cpu/selection/order_statistics.h"
#include "cpu/support/arena.h"
#include "cpu/support/parallel.h"

namespace rf {

// Removed are values >= bound (MoRF) or <= bound (LeRF); a NaN bound removes nothing. If `split`,
// of the values equal to the bound only those go whose hash is >= (MoRF) or <= (LeRF) `hash`.
template <typename V>
struct Bound {
  V value;
  bool split;
  int64_t ties_to_remove;
  int64_t spared;  // of the ties that have just this hash, how many stay nevertheless
  uint32_t hash;
};

// What to remove from every row, worked out once per call.
struct RemovalPlan {
  rf_dtype dtype;
  rf_rule rule;
  rf_order order;
  int64_t f;
  int count;
  double rates[RF_MAX_RATES];
  int64_t k[RF_MAX_RATES];                 // exact: how many features go
  int64_t ranks[RF_MAX_RATES];             // exact: of the bounds, ascending
  int rank_count = 0;                      // without rates at which no feature goes, or all
  Interpolation percentile[RF_MAX_RATES];  // percentile and strict: where the threshold is

  RemovalPlan(rf_dtype dtype, rf_rule rule, rf_order order, int64_t f, const double* drops,
              int64_t ndrops);
};

// The rows of one thread, compared as V: float or double.
template <typename V>
class RowRemoval {
 public:
  using value_type = V;

  RowRemoval(void* scratch, int64_t f, int64_t rates);
  static int64_t scratch_bytes(int64_t f, int64_t rates) {
    return RowRemoval(nullptr, f, rates).arena_.bytes();
  }

  // Loads a row of any dtype that is compared as V.
  void load_row(rf_dtype dtype, const void* row);

  // RF_ROW_NAN and so on, known after any of the following.
  uint8_t flags() const { return flags_; }

  // out[r] for the ascending ranks[r]. From here on the row has +inf for NaN.
  void select(const int64_t* ranks, int count, OrderStatistic<V>* out,
              const Coding* coding = nullptr);

  // mask[i]: whether feature i goes at the only rate of the plan; with `keep`, whether it stays.
  void write_mask(const RemovalPlan& plan, bool keep, uint64_t seed, int64_t sample, uint8_t* mask);

  // codes[i]: how many rates leave feature i alone, which is the first one that removes it.
  void write_codes(const RemovalPlan& plan, uint64_t seed, int64_t sample, uint8_t* codes);

 private:
  void find_bounds(const RemovalPlan& plan, uint8_t* codes = nullptr);
  void bounds_of_counts(const RemovalPlan& plan, uint8_t* codes);
  void bounds_of_percentiles(const RemovalPlan& plan);
  void bounds_of_values(const RemovalPlan& plan);
  V value_at(const RemovalPlan& plan, int64_t rank) const;
  int split_ties(const RemovalPlan& plan, int first, uint64_t seed, int64_t sample);
  template <typename Spare>
  void for_spared(const RemovalPlan& plan, const Bound<V>& bound, const Spare& spare) const;
  int64_t hash_ties(V v, uint64_t seed, int64_t sample);

  Arena arena_;
  int64_t f_;
  RowSelector<V> selector_;
  const V* values_ = nullptr;
  uint8_t flags_ = 0;
  V* converted_;
  uint32_t* hashes_;          // [f], rounded up to whole chunks
  uint32_t* tied_hashes_[3];  // [f + kCompressSlack]: those of ties only, and room to search them
  OrderStatistic<V>* statistics_;
  int64_t* ranks_;
  Bound<V>* bounds_;
  V* edges_;  // the values of the bounds
};

extern template class RowRemoval<float>;
extern template class RowRemoval<double>;

// Rows handed to a thread at a time: enough work to be worth waking it.
inline int64_t row_grain(int64_t f) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(f, 1));
}

// The rows of a selection op: n rows of f features. Threads take `grain` rows at a time, and have
// `extra` bytes each beside what selecting at up to `rates` rates takes.
struct SelectedRows {
  rf_dtype dtype;
  int64_t n, f, rates, grain, extra;

  SelectedRows(rf_dtype dtype, int64_t n, int64_t f, int64_t rates)
      : dtype(dtype), n(n), f(f), rates(rates), grain(row_grain(f)), extra(0) {}

  int64_t thread_bytes() const {
    return extra + (dtype == RF_FLOAT64 ? RowRemoval<double>::scratch_bytes(f, rates)
                                        : RowRemoval<float>::scratch_bytes(f, rates));
  }
  int64_t workspace_bytes() const { return thread_bytes() * plan_threads(n, grain); }

  // Calls body(row, i, extra bytes) with every row i loaded, which must select from it, and says
  // which have a NaN.
  template <typename Body>
  void for_each(const void* in, uint8_t* nan_flags, void* workspace, const Body& body) const {
    dtype == RF_FLOAT64 ? for_each_as<double>(in, nan_flags, workspace, body)
                        : for_each_as<float>(in, nan_flags, workspace, body);
  }

 private:
  template <typename V, typename Body>
  void for_each_as(const void* in, uint8_t* nan_flags, void* workspace, const Body& body) const {
    const int64_t row_bytes = f * dtype_bytes(dtype);
    parallel_for(n, grain, [&](int64_t begin, int64_t end, int thread) {
      unsigned char* mine = static_cast<unsigned char*>(workspace) + thread * thread_bytes();
      RowRemoval<V> row(mine + extra, f, rates);
      for (int64_t i = begin; i < end; ++i) {
        row.load_row(dtype, static_cast<const unsigned char*>(in) + i * row_bytes);
        body(row, i, mine);
        if (nan_flags) nan_flags[i] = row.flags();
      }
    });
  }
};

}  // namespace rf
