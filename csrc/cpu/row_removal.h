// Which features of one row are removed: from rates and a rule to bounds on the values, and ties by
// hash.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/selection.h"
#include "cpu/order_statistics.h"
#include "cpu/philox_lanes.h"

namespace rf {

// Removed are values >= bound (MoRF) or <= bound (LeRF); a NaN bound removes nothing. If `split`,
// of the values equal to the bound only those go whose hash is >= (MoRF) or <= (LeRF) `hash`.
template <typename V>
struct Bound {
  V value;
  bool split;
  int64_t ties, ties_to_remove;
  uint32_t hash;
};

// What to remove from every row, worked out once per call.
template <typename T>
struct RemovalPlan {
  rf_rule rule;
  rf_order order;
  int64_t f;
  int count;
  int64_t k[RF_MAX_RATES];                 // exact: how many features go
  Interpolation percentile[RF_MAX_RATES];  // percentile and strict: where the threshold is

  RemovalPlan(rf_rule rule, rf_order order, int64_t f, const double* drops, int64_t ndrops)
      : rule(rule), order(order), f(f), count(static_cast<int>(ndrops)) {
    for (int j = 0; j < count; ++j) {
      k[j] = exact_count(drops[j], f);
      percentile[j] = plan_percentile<T>(rule_percentile(drops[j], order), f, false);
    }
  }
};

// The rows of one thread. T is what the maps are stored in, V what they are compared in.
template <typename T>
class RowRemoval {
 public:
  using V = compute_t<T>;

  static int64_t scratch_bytes(int64_t f, int64_t rates) {
    return RowSelector<V>::scratch_bytes(f, 2 * rates) + aligned(f * sizeof(V)) +
           aligned((f + kChunk) * 4) + aligned(f * 4 + 4) +
           aligned(2 * rates * sizeof(OrderStatistic<V>)) + aligned(2 * rates * 8) +
           aligned(rates * sizeof(Bound<V>)) + 64;
  }

  RowRemoval(void* scratch, int64_t f, int64_t rates)
      : f_(f),
        scratch_(align(scratch)),
        selector_(take(RowSelector<V>::scratch_bytes(f, 2 * rates)), f, 2 * rates) {
    converted_ = static_cast<V*>(take(f * sizeof(V)));
    hashes_ = static_cast<uint32_t*>(take((f + kChunk) * 4));
    inside_ = static_cast<uint32_t*>(take(f * 4 + 4));
    statistics_ = static_cast<OrderStatistic<V>*>(take(2 * rates * sizeof(OrderStatistic<V>)));
    ranks_ = static_cast<int64_t*>(take(2 * rates * 8));
    bounds_ = static_cast<Bound<V>*>(take(rates * sizeof(Bound<V>)));
  }

  // Loads the row: the values compared from now on are values()[0..f), with +inf for NaN. Whether
  // it has a NaN.
  bool load_row(const T* row) {
    if constexpr (std::is_same_v<T, V>) {
      values_ = row;
    } else {
      for (int64_t i = 0; i < f_; ++i) converted_[i] = load(row[i]);
      values_ = converted_;
    }
    range_ = row_range(values_, f_);
    if (!range_.has_nan) return false;
    for (int64_t i = 0; i < f_; ++i) {
      const V v = values_[i];
      converted_[i] = v != v ? std::numeric_limits<V>::infinity() : v;
    }
    values_ = converted_;
    range_ = row_range(values_, f_);
    return true;
  }

  const V* values() const { return values_; }

  // out[r] for the ascending ranks[r].
  void select(const int64_t* ranks, int count, OrderStatistic<V>* out) {
    selector_.select(values_, f_, range_, ranks, count, out);
  }

  // The bounds of all rates, for codes made non-decreasing in what they remove; see
  // docs/selection.md.
  const Bound<V>* find_bounds(const RemovalPlan<T>& plan) {
    plan.rule == RF_EXACT ? bounds_of_counts(plan) : bounds_of_percentiles(plan);
    return bounds_;
  }

  // Finds, bound by bound, the hash that splits its ties, and calls apply(bound) while hashes()[i]
  // holds the hashes of its ties. Two ties may share a hash: spared(j, i) is then called for each
  // feature i that has the hash of bound j but stays (it has the lower feature number in MoRF, the
  // higher in LeRF).
  template <typename Spared, typename Apply>
  void split_ties(const RemovalPlan<T>& plan, uint64_t seed, int64_t sample, const Spared& spared,
                  const Apply& apply) {
    const bool morf = plan.order == RF_MORF;
    for (int j = 0; j < plan.count; ++j) {
      Bound<V>& bound = bounds_[j];
      if (!bound.split) continue;
      if (j == 0 || !bounds_[j - 1].split || bounds_[j - 1].value != bound.value) {
        hash_ties(bound.value, seed, sample);
      }
      const int64_t rank = morf ? bound.ties - bound.ties_to_remove : bound.ties_to_remove - 1;
      const OrderStatistic<uint32_t> s = select_hash(bound, rank);
      bound.hash = s.value;
      apply(bound);
      int64_t spare =
          s.equal - (bound.ties_to_remove - (morf ? bound.ties - s.smaller - s.equal : s.smaller));
      for (int64_t b = 0; spare > 0; ++b) {
        const int64_t i = morf ? b : f_ - 1 - b;
        if (values_[i] != bound.value || hashes_[i] != bound.hash) continue;
        spared(j, i);
        --spare;
      }
    }
  }

  const uint32_t* hashes() const { return hashes_; }

 private:
  static int64_t aligned(int64_t bytes) { return (bytes + 63) & ~int64_t{63}; }
  static unsigned char* align(void* p) {
    return reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(p) + 63) & ~uintptr_t{63});
  }
  void* take(int64_t bytes) {
    void* start = scratch_;
    scratch_ += aligned(bytes);
    return start;
  }

  void bounds_of_counts(const RemovalPlan<T>& plan) {
    constexpr V kInf = std::numeric_limits<V>::infinity(),
                kNan = std::numeric_limits<V>::quiet_NaN();
    const bool morf = plan.order == RF_MORF;
    int count = 0;
    for (int b = 0; b < plan.count; ++b) {
      const int j = morf ? plan.count - 1 - b : b;  // ranks must ascend
      if (plan.k[j] > 0 && plan.k[j] < f_) ranks_[count++] = morf ? f_ - plan.k[j] : plan.k[j] - 1;
    }
    select(ranks_, count, statistics_);
    int next = 0;
    for (int b = 0; b < plan.count; ++b) {
      const int j = morf ? plan.count - 1 - b : b;
      const int64_t k = plan.k[j];
      if (k == 0 || k == f_) {
        bounds_[j] = {k == 0 ? kNan : morf ? -kInf : kInf, false, 0, 0, 0};
        continue;
      }
      const OrderStatistic<V>& s = statistics_[next++];
      const int64_t beyond = morf ? f_ - s.smaller - s.equal : s.smaller;
      bounds_[j] = {s.value, k - beyond < s.equal, s.equal, k - beyond, 0};
    }
  }

  void bounds_of_percentiles(const RemovalPlan<T>& plan) {
    const bool morf = plan.order == RF_MORF;
    for (int b = 0; b < plan.count; ++b) {
      const int j = morf ? plan.count - 1 - b : b;
      ranks_[2 * b] = plan.percentile[j].below;
      ranks_[2 * b + 1] = plan.percentile[j].above;
    }
    // Neighbouring rates may interleave (both between the same ranks), so sort; they nearly are.
    std::sort(ranks_, ranks_ + 2 * plan.count);
    select(ranks_, 2 * plan.count, statistics_);
    for (int j = 0; j < plan.count; ++j) {
      const Interpolation& p = plan.percentile[j];
      bounds_[j] = {threshold_bound(
                        plan, lerp<T, false>(value_at(plan, p.below), value_at(plan, p.above), p)),
                    false, 0, 0, 0};
    }
    for (int j = 1; j < plan.count;
         ++j) {  // NaN thresholds (inf - inf) would break the nesting of codes
      const V previous = bounds_[j - 1].value, v = bounds_[j].value;
      const bool nested = previous != previous || (morf ? v <= previous : v >= previous);
      if (!nested) bounds_[j].value = previous;
    }
  }

  V value_at(const RemovalPlan<T>& plan, int64_t rank) const {
    return statistics_[std::lower_bound(ranks_, ranks_ + 2 * plan.count, rank) - ranks_].value;
  }

  // The inclusive bound in V that compares as NumPy compares T with its threshold.
  template <typename R>
  V threshold_bound(const RemovalPlan<T>& plan, R threshold) const {
    constexpr V kInf = std::numeric_limits<V>::infinity();
    const bool morf = plan.order == RF_MORF, strict = plan.rule == RF_STRICT;
    if constexpr (std::is_same_v<T, uint8_t>) {
      const R edge = morf ? (strict ? std::floor(threshold) + 1 : std::ceil(threshold))
                          : (strict ? std::ceil(threshold) - 1 : std::floor(threshold));
      return static_cast<V>(edge);
    } else {
      if (!strict) return threshold;
      if (threshold == (morf ? kInf : -kInf)) return std::numeric_limits<V>::quiet_NaN();
      return std::nextafter(static_cast<V>(threshold), morf ? kInf : -kInf);
    }
  }

  // hashes_[i] for all features that equal v, and for their neighbours.
  void hash_ties(V v, uint64_t seed, int64_t sample) {
    for (int64_t begin = 0; begin < f_; begin += kChunk) {
      const int64_t size = std::min(kChunk, f_ - begin);
      const V* x = values_ + begin;
      int32_t here = 0;
      for (int64_t i = 0; i < size; ++i) here |= x[i] == v;
      if (here) philox_lanes(seed, sample, begin >> 2, kDomainTieBreak, hashes_ + begin);
    }
  }

  // The hash at `rank` among the ties of the bound. Hashes are uniform, so it is known well in
  // advance where that is: count the ties below a narrow bracket, collect those inside, and start
  // over with everything if it is missed.
  OrderStatistic<uint32_t> select_hash(const Bound<V>& bound, int64_t rank) {
    const double ties = static_cast<double>(bound.ties),
                 p = (static_cast<double>(rank) + 0.5) / ties;
    const double half_width = 5.0 * std::sqrt(p * (1.0 - p) / ties) + 4.0 / ties;
    double low = (p - half_width) * 4294967296.0, high = (p + half_width) * 4294967296.0;
    for (;;) {
      const uint32_t lowest = low <= 0.0 ? 0u : static_cast<uint32_t>(low);
      const uint32_t highest = high >= 4294967295.0 ? 0xffffffffu : static_cast<uint32_t>(high);
      const uint32_t width = highest - lowest;
      int64_t below = 0, inside = 0;
      const V v = bound.value;
      for (int64_t begin = 0; begin < f_; begin += kChunk) {
        const int64_t size = std::min(kChunk, f_ - begin);
        const V* x = values_ + begin;
        const uint32_t* h = hashes_ + begin;
        if (size < kChunk) {
          for (int64_t i = 0; i < size; ++i) {
            if (x[i] != v) continue;
            below += h[i] < lowest;
            inside_[inside] = h[i];
            inside += h[i] - lowest <= width;
          }
          continue;
        }
        uint64_t hits[kChunk / 8];  // one byte per feature
        below += count_ties(x, h, v, lowest, width, reinterpret_cast<uint8_t*>(hits));
        for (int64_t w = 0; w < kChunk / 8; ++w) {
          for (uint64_t left = hits[w]; left != 0; left &= left - 1) {
            inside_[inside++] = h[8 * w + __builtin_ctzll(left) / 8];
          }
        }
      }
      if (rank >= below && rank < below + inside) {
        OrderStatistic<uint32_t> s = select_in_place(inside_, inside, rank - below);
        s.smaller += below;
        return s;
      }
      low = 0.0;
      high = 4294967296.0;
    }
  }

  static constexpr int64_t kChunk = 4 * kLaneBlocks;

  // Of kChunk features, how many tie with a hash below `lowest`; hits[i] is 1 for ties with a hash
  // in the bracket. Not inlined, so that GCC vectorises the loop.
  __attribute__((noinline)) static int32_t count_ties(const V* x, const uint32_t* h, V v,
                                                      uint32_t lowest, uint32_t width,
                                                      uint8_t* hits) {
    int32_t below = 0;
    for (int64_t i = 0; i < kChunk; ++i) below += (x[i] == v) & (h[i] < lowest);
    for (int64_t i = 0; i < kChunk; ++i) {
      hits[i] = static_cast<uint8_t>((x[i] == v) & (h[i] - lowest <= width));
    }
    return below;
  }

  int64_t f_;
  unsigned char* scratch_;
  RowSelector<V> selector_;
  const V* values_ = nullptr;
  RowRange<V> range_{};
  V* converted_;
  uint32_t* hashes_;  // [f], rounded up to whole chunks
  uint32_t* inside_;  // [f + 1]: collecting writes one beyond
  OrderStatistic<V>* statistics_;
  int64_t* ranks_;
  Bound<V>* bounds_;
};

// Rows handed to a thread at a time: enough work to be worth waking it.
inline int64_t row_grain(int64_t f) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(f, 1));
}

}  // namespace rf
