// Bounds on the values of a row, and which ties at a bound go.
#include "cpu/selection/row_removal.h"

#include <cmath>
#include <limits>

#include "cpu/selection/row_writers.h"
#include "cpu/support/philox_vec.h"

namespace rf {

namespace {

constexpr int64_t kChunk = kPhiloxWords;  // features hashed at a time

template <typename V>
constexpr V kNan = std::numeric_limits<V>::quiet_NaN();

// The inclusive bound in V that compares as NumPy compares T with its threshold, which it
// interpolates between a and b.
template <typename T, typename V>
V threshold_bound(const RemovalPlan& plan, V a, V b, const Interpolation& p) {
  const bool morf = plan.order == RF_MORF, strict = plan.rule == RF_STRICT;
  const auto threshold = lerp<T, false>(a, b, p);
  if constexpr (std::is_same_v<T, uint8_t>) {
    const auto edge = morf ? (strict ? std::floor(threshold) + 1 : std::ceil(threshold))
                           : (strict ? std::ceil(threshold) - 1 : std::floor(threshold));
    return static_cast<V>(edge);
  } else {
    if (!strict) return threshold;
    if (threshold == (morf ? kHighest<V> : kLowest<V>)) return kNan<V>;
    return morf ? step_up<V>(threshold) : step_down<V>(threshold);
  }
}

}  // namespace

RemovalPlan::RemovalPlan(rf_dtype dtype, rf_rule rule, rf_order order, int64_t f,
                         const double* drops, int64_t ndrops)
    : dtype(dtype), rule(rule), order(order), f(f), count(static_cast<int>(ndrops)) {
  dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int j = 0; j < count; ++j) {
      rates[j] = drops[j];
      k[j] = exact_count(drops[j], f);
      percentile[j] = plan_percentile<T>(rule_percentile(drops[j], order), f, false);
    }
  });
  for (int b = 0; b < count; ++b) {
    const int j = order == RF_MORF ? count - 1 - b : b;  // MoRF removes from the other end
    if (k[j] > 0 && k[j] < f) ranks[rank_count++] = order == RF_MORF ? f - k[j] : k[j] - 1;
  }
}

template <typename V>
RowRemoval<V>::RowRemoval(void* scratch, int64_t f, int64_t rates)
    : arena_(scratch), f_(f), selector_(arena_, f, 2 * rates) {
  converted_ = arena_.take<V>(f);
  hashes_ = arena_.take<uint32_t>(f + kChunk);
  for (uint32_t*& buffer : tied_hashes_) buffer = arena_.take<uint32_t>(f + kCompressSlack);
  statistics_ = arena_.take<OrderStatistic<V>>(2 * rates);
  ranks_ = arena_.take<int64_t>(2 * rates);
  bounds_ = arena_.take<Bound<V>>(rates);
  edges_ = arena_.take<V>(rates);
}

template <typename V>
void RowRemoval<V>::load_row(rf_dtype dtype, const void* row) {
  flags_ = 0;
  dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, V>) {
      values_ = static_cast<const V*>(row);
    } else if constexpr (std::is_same_v<compute_t<T>, V>) {
      for (int64_t i = 0; i < f_; ++i) converted_[i] = load(static_cast<const T*>(row)[i]);
      values_ = converted_;
    }
  });
}

template <typename V>
void RowRemoval<V>::select(const int64_t* ranks, int count, OrderStatistic<V>* out,
                           const Coding* coding) {
  if (selector_.select(values_, f_, ranks, count, out, coding)) return;
  flags_ |= RF_ROW_NAN;
  for (int64_t i = 0; i < f_; ++i) {
    const V v = values_[i];
    converted_[i] = v != v ? kHighest<V> : v;
  }
  values_ = converted_;
  selector_.select(values_, f_, ranks, count, out, coding);
}

// The bounds of all rates; codes may be written on the way. For codes they are made non-decreasing
// in what they remove; see docs/selection.md.
template <typename V>
void RowRemoval<V>::find_bounds(const RemovalPlan& plan, uint8_t* codes) {
  switch (plan.rule) {
    case RF_EXACT:
      return bounds_of_counts(plan, codes);
    case RF_VALUE:
      return bounds_of_values(plan);
    default:
      return bounds_of_percentiles(plan);
  }
}

// One pass for the maximum; all bounds follow from it. Factors of ascending rates fall, so do their
// products: the bounds are nested as they are.
template <typename V>
void RowRemoval<V>::bounds_of_values(const RemovalPlan& plan) {
  const RowRange<V> range = row_range(values_, f_);
  flags_ =
      static_cast<uint8_t>((range.nan ? RF_ROW_NAN : 0) | (range.low < 0 ? RF_ROW_NEGATIVE : 0) |
                           (range.high > std::numeric_limits<V>::max() ? RF_ROW_INFINITE : 0));
  for (int j = 0; j < plan.count; ++j) {
    const V threshold = value_threshold(range.high, plan.rates[j], plan.order);
    edges_[j] = plan.order == RF_MORF ? step_up<V>(threshold) : step_down<V>(threshold);
    bounds_[j] = {edges_[j], false, 0, 0, 0};
  }
}

template <typename V>
void RowRemoval<V>::bounds_of_counts(const RemovalPlan& plan, uint8_t* codes) {
  const bool morf = plan.order == RF_MORF;
  int nothing = 0;  // rates that remove nothing, so all codes count them
  while (nothing < plan.count && plan.k[nothing] == 0) ++nothing;
  const Coding coding{codes, morf, static_cast<uint8_t>(nothing)};
  select(plan.ranks, plan.rank_count, statistics_, codes ? &coding : nullptr);
  int next = 0;
  for (int b = 0; b < plan.count; ++b) {
    const int j = morf ? plan.count - 1 - b : b;
    const int64_t k = plan.k[j];
    if (k == 0 || k == f_) {
      edges_[j] = k == 0 ? kNan<V> : morf ? kLowest<V> : kHighest<V>;
      bounds_[j] = {edges_[j], false, 0, 0, 0};
      continue;
    }
    const OrderStatistic<V>& s = statistics_[next++];
    const int64_t beyond = morf ? f_ - s.smaller - s.equal : s.smaller;
    edges_[j] = s.value;
    bounds_[j] = {s.value, k - beyond < s.equal, k - beyond, 0, 0};
  }
}

template <typename V>
void RowRemoval<V>::bounds_of_percentiles(const RemovalPlan& plan) {
  const bool morf = plan.order == RF_MORF;
  for (int b = 0; b < plan.count; ++b) {
    const int j = morf ? plan.count - 1 - b : b;
    ranks_[2 * b] = plan.percentile[j].below;
    ranks_[2 * b + 1] = plan.percentile[j].above;
  }
  // Neighbouring rates may interleave (both between the same ranks), so sort; they nearly are.
  std::sort(ranks_, ranks_ + 2 * plan.count);
  select(ranks_, 2 * plan.count, statistics_);
  dispatch_any(plan.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<compute_t<T>, V>) {
      for (int j = 0; j < plan.count; ++j) {
        const Interpolation& p = plan.percentile[j];
        const V a = value_at(plan, p.below), b = value_at(plan, p.above);
        bounds_[j] = {threshold_bound<T>(plan, a, b, p), false, 0, 0, 0};
      }
    }
  });
  for (int j = 1; j < plan.count; ++j) {
    // NaN thresholds (inf - inf) would break the nesting of codes.
    const V previous = bounds_[j - 1].value, v = bounds_[j].value;
    const bool nested = previous != previous || (morf ? v <= previous : v >= previous);
    if (!nested) bounds_[j].value = previous;
  }
  for (int j = 0; j < plan.count; ++j) edges_[j] = bounds_[j].value;
}

template <typename V>
V RowRemoval<V>::value_at(const RemovalPlan& plan, int64_t rank) const {
  return statistics_[std::lower_bound(ranks_, ranks_ + 2 * plan.count, rank) - ranks_].value;
}

// hashes_[i] for all features that equal v, and for their neighbours; tied_hashes_[0] for those
// that equal v only. Returns how many these are.
template <typename V>
int64_t RowRemoval<V>::hash_ties(V v, uint64_t seed, int64_t sample) {
  int64_t ties = 0;
  for (int64_t begin = 0; begin < f_; begin += kChunk) {
    const int64_t size = std::min(kChunk, f_ - begin);
    const V* x = values_ + begin;
    int32_t here = 0;
    for (int64_t i = 0; i < size; ++i) here |= x[i] == v;
    if (!here) continue;
    philox_words(seed, sample, begin >> 2, kDomainTieBreak, hashes_ + begin);
    ties += keep_ties(x, hashes_ + begin, size, v, tied_hashes_[0] + ties);
  }
  return ties;
}

// Finds the hashes that split the ties of bounds_[first] and of the bounds after it with the same
// ties; returns the first bound that has others. hashes_[i] then holds the hashes of these ties.
template <typename V>
int RowRemoval<V>::split_ties(const RemovalPlan& plan, int first, uint64_t seed, int64_t sample) {
  const bool morf = plan.order == RF_MORF;
  const V value = bounds_[first].value;
  const int64_t ties = hash_ties(value, seed, sample);
  int j = first;
  for (; j < plan.count && bounds_[j].split && bounds_[j].value == value; ++j) {
    Bound<V>& bound = bounds_[j];
    const int64_t rank = morf ? ties - bound.ties_to_remove : bound.ties_to_remove - 1;
    const OrderStatistic<uint32_t> s =
        select_rank(tied_hashes_[0], ties, rank, tied_hashes_[1], tied_hashes_[2], true);
    bound.hash = s.value;
    bound.spared =
        s.equal - (bound.ties_to_remove - (morf ? ties - s.smaller - s.equal : s.smaller));
  }
  return j;
}

// Two ties may share a hash: calls spare(i) for each feature i that has the hash of the bound but
// stays (those with the lowest feature numbers in MoRF, the highest in LeRF).
template <typename V>
template <typename Spare>
void RowRemoval<V>::for_spared(const RemovalPlan& plan, const Bound<V>& bound,
                               const Spare& spare) const {
  int64_t left = bound.spared;
  for (int64_t b = 0; left > 0; ++b) {
    const int64_t i = plan.order == RF_MORF ? b : f_ - 1 - b;
    if (values_[i] != bound.value || hashes_[i] != bound.hash) continue;
    spare(i);
    --left;
  }
}

template <typename V>
void RowRemoval<V>::write_mask(const RemovalPlan& plan, bool keep, uint64_t seed, int64_t sample,
                               uint8_t* mask) {
  find_bounds(plan);
  const Bound<V>& bound = bounds_[0];
  const bool morf = plan.order == RF_MORF;
  if (!bound.split) {
    const auto compare = morf ? compare_row<true, V> : compare_row<false, V>;
    compare(values_, f_, bound.value, keep, mask);
    return;
  }
  split_ties(plan, 0, seed, sample);
  const auto compare = morf ? compare_row_and_hash<true, V> : compare_row_and_hash<false, V>;
  compare(values_, hashes_, f_, bound.value, bound.hash, keep, mask);
  for_spared(plan, bound, [&](int64_t i) { mask[i] = keep; });
}

template <typename V>
void RowRemoval<V>::write_codes(const RemovalPlan& plan, uint64_t seed, int64_t sample,
                                uint8_t* codes) {
  find_bounds(plan, codes);
  const bool morf = plan.order == RF_MORF;
  const bool done = plan.rule == RF_VALUE ? false
                    : morf ? selector_.template count_edges<true>(f_, edges_, plan.count, codes)
                           : selector_.template count_edges<false>(f_, edges_, plan.count, codes);
  if (!done) {
    const auto count = morf ? count_bounds<true, V> : count_bounds<false, V>;
    count(values_, f_, edges_, plan.count, codes);
  }
  for (int first = 0, end; first < plan.count; first = end) {
    end = first + 1;
    if (!bounds_[first].split) continue;
    end = split_ties(plan, first, seed, sample);
    uint32_t hashes[RF_MAX_RATES];
    for (int j = first; j < end; ++j) hashes[j - first] = bounds_[j].hash;
    const auto count = morf ? count_splits<true, V> : count_splits<false, V>;
    count(values_, hashes_, f_, bounds_[first].value, hashes, end - first, codes);
    for (int j = first; j < end; ++j) for_spared(plan, bounds_[j], [&](int64_t i) { ++codes[i]; });
  }
}

template class RowRemoval<float>;
template class RowRemoval<double>;

}  // namespace rf
