// From rates and a rule to what one thread block removes
// of its row; the twin of cpu/selection/row_removal.h.
#pragma once

#include <cstdint>

#include "cuda/selection/row_selection.h"

namespace rf {

struct RemovalParams {
  rf_rule rule;
  rf_order order;
  int count;
  uint64_t seed;
  double rates[RF_MAX_RATES];
};

inline RemovalParams removal_params(rf_rule rule, rf_order order, uint64_t seed,
                                    const double* drops, int64_t count) {
  RemovalParams p{rule, order, static_cast<int>(count), seed, {}};
  for (int j = 0; j < p.count; ++j) p.rates[j] = drops[j];
  return p;
}

// One rate's removed set: keys >= key (MoRF) or <= key
// (LeRF); if split, ties go by (hash, feature).
template <typename T>
struct KeyBound {
  key_t<T> key;
  uint32_t hash, feature;
  uint8_t never, split;

  __device__ bool ties(key_t<T> k) const { return split && k == key; }
  // Whether it removes this value, or may.
  __device__ bool may_remove(rf_order order, key_t<T> k) const {
    return !never && (order == RF_MORF ? k >= key : k <= key);
  }
  __device__ bool removes_tie(rf_order order, uint32_t h, uint32_t i) const {
    if (h != hash) return order == RF_MORF ? h > hash : h < hash;
    return order == RF_MORF ? i >= feature : i <= feature;
  }
  __device__ bool removes(rf_order order, key_t<T> k, int64_t i, uint64_t seed,
                          int64_t sample) const {
    if (never || !ties(k)) return may_remove(order, k);
    return removes_tie(order, philox_word(seed, sample, i, kDomainTieBreak),
                       static_cast<uint32_t>(i));
  }
};

template <typename T, int kRates>
struct RowRemoval {
  RowSelection<T, 2 * kRates, (kRates > 1 ? 16 : 2)> selection;
  KeyBound<T> bounds[kRates];
  // Which rank belongs to a rate: [j] (exact), [2 j] and [2 j + 1]
  // (percentile).
  int16_t rank_of[2 * kRates];
  unsigned long long top;  // value: the key of the maximum
  unsigned flags;          // value: RF_ROW_NAN and so on

  // Bounds of all rates, nested; all threads of the block call it. Returns what is wrong with the
  // row: RF_ROW_NAN and so on.
  __device__ unsigned find_bounds(const T* row, int64_t f, const RemovalParams& p, int64_t sample,
                                  bool check_nan) {
    // What thread 0 writes first, nobody reads behind the last barrier of the row before.
    if (p.rule == RF_VALUE) return value_bounds(row, f, p);
    if (threadIdx.x == 0) p.rule == RF_EXACT ? rank_counts(p, f) : rank_percentiles(p, f);
    __syncthreads();
    const bool nan =
        select_row(selection, row, f, p.rule == RF_EXACT, p.order, p.seed, sample, check_nan);
    for (int j = threadIdx.x; j < p.count; j += kSelectThreads) {
      bounds[j] = p.rule == RF_EXACT ? count_bound(p, f, j) : percentile_bound(p, f, j);
    }
    __syncthreads();
    if (threadIdx.x == 0 && p.rule != RF_EXACT) nest(p);
    __syncthreads();
    return nan ? static_cast<unsigned>(RF_ROW_NAN) : 0u;
  }

  // Index of the first rate that removes feature i, p.count if none. First by
  // values, where a tie counts as removed; the random number is drawn only for
  // features that tie.
  __device__ int code(const RemovalParams& p, key_t<T> key, int64_t i, int64_t sample) const {
    int low = 0, high = p.count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (bounds[middle].may_remove(p.order, key)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low < p.count && bounds[low].ties(key)) {
      const uint32_t hash = philox_word(p.seed, sample, i, kDomainTieBreak);
      while (low < p.count && bounds[low].ties(key) &&
             !bounds[low].removes_tie(p.order, hash, static_cast<uint32_t>(i))) {
        ++low;
      }
    }
    return low;
  }

 private:
  // The maximum by one pass over the row; every bound follows from it.
  __device__ unsigned value_bounds(const T* row, int64_t f, const RemovalParams& p) {
    if (threadIdx.x == 0) top = flags = 0;
    __syncthreads();
    unsigned long long highest = 0;
    unsigned wrong = 0;
    for (int64_t k = threadIdx.x; k < f; k += kSelectThreads) {
      const T v = row[k];
      const unsigned long long key = order_key(v);
      highest = key > highest ? key : highest;
      wrong |= (is_nan(v) ? RF_ROW_NAN : 0) | (load(v) < 0 ? RF_ROW_NEGATIVE : 0);
    }
    for (int half = kWarp / 2; half > 0; half /= 2) {
      const unsigned long long other = __shfl_down_sync(0xffffffffu, highest, half);
      highest = other > highest ? other : highest;
      wrong |= __shfl_down_sync(0xffffffffu, wrong, half);
    }
    if (threadIdx.x % kWarp == 0) {
      atomicMax(&top, highest);
      if (wrong) atomicOr(&flags, wrong);
    }
    __syncthreads();
    const unsigned found = flags;
    const compute_t<T> maximum = key_value<T>(static_cast<key_t<T>>(top));
    for (int j = threadIdx.x; j < p.count; j += kSelectThreads) {
      bounds[j] = value_bound(p.order, value_threshold(maximum, p.rates[j], p.order));
    }
    __syncthreads();
    const unsigned infinite = maximum - maximum != 0 ? static_cast<unsigned>(RF_ROW_INFINITE) : 0u;
    return found | infinite;
  }

  // The first key above a threshold (MoRF), or the last below it (LeRF).
  __device__ static KeyBound<T> value_bound(rf_order order, compute_t<T> threshold) {
    const bool morf = order == RF_MORF;
    if (threshold != threshold) return {0, 0, 0, 1, 0};
    if constexpr (std::is_same_v<T, uint8_t>) {
      const double edge = morf ? floor(static_cast<double>(threshold)) + 1
                               : ceil(static_cast<double>(threshold)) - 1;
      return {edge < 0 ? 0u : static_cast<uint32_t>(edge), 0, 0, edge < 0, 0};
    } else {
      const T nearest = store<T>(threshold);
      const key_t<T> key = order_key(nearest);
      if (morf) return {load(nearest) > threshold ? key : key + 1, 0, 0, 0, 0};
      return {load(nearest) < threshold ? key : key - 1, 0, 0, 0, 0};
    }
  }

  __device__ void rank_counts(const RemovalParams& p, int64_t f) {
    int count = 0;
    for (int b = 0; b < p.count; ++b) {
      const int j = p.order == RF_MORF ? p.count - 1 - b : b;  // ranks ascend
      const int64_t k = exact_count(p.rates[j], f);
      rank_of[j] = -1;
      if (k == 0 || k == f) continue;
      rank_of[j] = static_cast<int16_t>(count);
      selection.left[count++] = static_cast<uint32_t>(p.order == RF_MORF ? f - k : k - 1);
    }
    selection.count = count;
  }

  // Two ranks per rate, fewer where rates share them.
  __device__ void rank_percentiles(const RemovalParams& p, int64_t f) {
    int count = 0;
    for (int b = 0; b < p.count; ++b) {
      const int j = p.order == RF_MORF ? p.count - 1 - b : b;
      const Interpolation q = plan_percentile<T>(rule_percentile(p.rates[j], p.order), f, false);
      rank_of[2 * j] =
          static_cast<int16_t>(append_rank(selection.left, &count, static_cast<uint32_t>(q.below)));
      rank_of[2 * j + 1] =
          static_cast<int16_t>(append_rank(selection.left, &count, static_cast<uint32_t>(q.above)));
    }
    selection.count = count;
  }

  __device__ KeyBound<T> count_bound(const RemovalParams& p, int64_t f, int j) const {
    const int r = rank_of[j];
    if (r < 0) {
      const bool nothing = exact_count(p.rates[j], f) == 0;
      return {p.order == RF_MORF ? key_t<T>(0) : ~key_t<T>(0), 0, 0, nothing, 0};
    }
    return {selection.key[r], selection.hash[r], selection.feature[r], 0, selection.split[r]};
  }

  __device__ KeyBound<T> percentile_bound(const RemovalParams& p, int64_t f, int j) const {
    const Interpolation q = plan_percentile<T>(rule_percentile(p.rates[j], p.order), f, false);
    const auto threshold = lerp<T, false>(key_value<T>(selection.key[rank_of[2 * j]]),
                                          key_value<T>(selection.key[rank_of[2 * j + 1]]), q);
    const bool morf = p.order == RF_MORF, strict = p.rule == RF_STRICT;
    if (threshold != threshold) return {0, 0, 0, 1, 0};
    if constexpr (std::is_same_v<T, uint8_t>) {
      const double edge = morf ? (strict ? floor(threshold) + 1 : ceil(threshold))
                               : (strict ? ceil(threshold) - 1 : floor(threshold));
      return {edge < 0 ? 0u : static_cast<uint32_t>(edge), 0, 0, edge < 0, 0};
    } else {
      const key_t<T> key = order_key(store<T>(static_cast<compute_t<T>>(threshold)));
      return {strict ? (morf ? key + 1 : key - 1) : key, 0, 0, 0, 0};
    }
  }

  __device__ void nest(const RemovalParams& p) {
    for (int j = 1; j < p.count; ++j) {
      const KeyBound<T>&previous = bounds[j - 1], &bound = bounds[j];
      const bool nested =
          previous.never || (!bound.never && (p.order == RF_MORF ? bound.key <= previous.key
                                                                 : bound.key >= previous.key));
      if (!nested) bounds[j] = previous;
    }
  }
};

constexpr int64_t kMaxRowGrid = 1 << 20;  // blocks stride over the rows

}  // namespace rf
