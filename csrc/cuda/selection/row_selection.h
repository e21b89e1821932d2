// Order statistics of one row by one thread block: radix selection, eight bits at a time, for many
// ranks at once.
//
// Every feature has a composite key (value key, hash, feature number), all different, so a rank is
// one feature. The block descends digit by digit: ranks that agree so far form a group, each group
// gets a histogram of the next digit of the features in it, and each rank picks its bin. Hash
// digits are visited only by ranks that cut through ties, the feature number only where even hashes
// tie. A row is read once per digit (and per kGroups groups); any size works.
#pragma once

#include <cstdint>

#include "common/philox.h"
#include "common/selection.h"
#include "cuda/selection/order_key.h"
#include "cuda/support/launch.h"

namespace rf {

constexpr int kSelectThreads = 256, kBins = 256, kWarp = 32;

// The state of a selection, in shared memory. Ranks ascend. After select_row, `key` is the value's
// key; for ranks that cut through ties `split` is set, and (hash, feature) say where.
template <typename T, int kRanks, int kGroups>
struct RowSelection {
  key_t<T> key[kRanks];
  uint32_t hash[kRanks], feature[kRanks];
  uint32_t left[kRanks];   // the rank among those that agree so far
  uint32_t equal[kRanks];  // how many those are
  uint8_t done[kRanks], split[kRanks];
  int16_t group[kRanks];   // ranks with one group agree so far; -1 if done
  int16_t leader[kRanks];  // a rank of each group
  int groups, count;
  uint32_t histogram[kGroups][kBins];
};

// Adds a rank to an ascending list without repeats, where it is; ranks come ascending except that
// one may equal one of the last two (the upper neighbour of the percentile before).
__device__ inline int append_rank(uint32_t* ranks, int* count, uint32_t rank) {
  for (int r = *count - 1; r >= 0 && ranks[r] >= rank; --r) {
    if (ranks[r] == rank) return r;
  }
  ranks[*count] = rank;
  return (*count)++;
}

// Which digit the block is at.
struct DigitLevel {
  int segment;  // 0: value key, 1: hash, 2: feature
  int shift;
};

// Groups equal prefixes. One thread: ranks are few,
// and neighbours differ only from their left neighbour.
template <typename T, int kRanks, int kGroups>
__device__ void group_ranks(RowSelection<T, kRanks, kGroups>& s) {
  int groups = 0, previous = -1;
  for (int r = 0; r < s.count; ++r) {
    s.group[r] = -1;
    if (s.done[r]) continue;
    const bool same = previous >= 0 && s.key[previous] == s.key[r] &&
                      s.hash[previous] == s.hash[r] && s.feature[previous] == s.feature[r];
    if (!same) s.leader[groups++] = static_cast<int16_t>(r);
    s.group[r] = static_cast<int16_t>(groups - 1);
    previous = r;
  }
  s.groups = groups;
}

// Whether `value` has the digits above `shift` of `prefix`.
template <typename U>
__device__ bool agrees(U value, U prefix, int shift, int bits) {
  return shift + 8 >= bits || (value >> (shift + 8)) == (prefix >> (shift + 8));
}

// Counts the digits of the features that belong to groups [first, last). Value digits and those of
// ties are two instances: in one loop, nvcc draws the tie's random number for every feature.
template <bool kValueDigits, typename T, int kRanks, int kGroups>
__device__ void count_digits(RowSelection<T, kRanks, kGroups>& s, const T* row, int64_t f,
                             DigitLevel level, int first, int last, uint64_t seed, int64_t sample) {
  for (int64_t base = 0; base < f; base += kSelectThreads) {
    const int64_t i = base + threadIdx.x;
    const key_t<T> key = i < f ? order_key(row[i]) : 0;
    int bin = -1;  // group and digit
    uint32_t hash = 0;
    bool hashed = false;
    for (int g = first; g < last && bin < 0 && i < f; ++g) {
      const int leader = s.leader[g];
      if constexpr (kValueDigits) {
        if (!agrees(key, s.key[leader], level.shift, KeyOf<T>::kBits)) continue;
        bin = (g - first) * kBins + static_cast<int>((key >> level.shift) & 255);
      } else {
        if (key != s.key[leader]) continue;
        if (!hashed) hash = philox_word(seed, sample, i, kDomainTieBreak);
        hashed = true;
        if (level.segment == 1) {
          if (agrees(hash, s.hash[leader], level.shift, 32)) {
            bin = (g - first) * kBins + static_cast<int>((hash >> level.shift) & 255);
          }
        } else if (hash == s.hash[leader] &&
                   agrees(static_cast<uint32_t>(i), s.feature[leader], level.shift, 32)) {
          bin = (g - first) * kBins + static_cast<int>((i >> level.shift) & 255);
        }
      }
    }
    // Leading digits of floats are often the same for a whole warp: one addition then does for all.
    const int first_bin = __shfl_sync(0xffffffffu, bin, 0);
    if (__all_sync(0xffffffffu, bin == first_bin)) {
      if (threadIdx.x % kWarp == 0 && bin >= 0)
        atomicAdd(&s.histogram[bin / kBins][bin % kBins], 32u);
    } else if (bin >= 0) {
      atomicAdd(&s.histogram[bin / kBins][bin % kBins], 1u);
    }
  }
}

// One warp: the digit of rank r from the histogram of its group, 8 bins per lane.
template <typename T, int kRanks, int kGroups>
__device__ void pick_digit(RowSelection<T, kRanks, kGroups>& s, int r, const uint32_t* histogram,
                           DigitLevel level) {
  const int lane = threadIdx.x % kWarp;
  constexpr int kPerLane = kBins / kWarp;
  uint32_t sum = 0;
  for (int b = 0; b < kPerLane; ++b) sum += histogram[lane * kPerLane + b];
  uint32_t through = sum;
  for (int step = 1; step < kWarp; step *= 2) {
    const uint32_t before = __shfl_up_sync(0xffffffffu, through, step);
    if (lane >= step) through += before;
  }
  const uint32_t left = s.left[r];
  __syncwarp();
  uint32_t before = through - sum;
  if (left < before || left >= through) return;
  int bin = lane * kPerLane;
  while (left >= before + histogram[bin]) before += histogram[bin++];
  s.left[r] = left - before;
  s.equal[r] = histogram[bin];
  if (level.segment == 0) {
    s.key[r] |= static_cast<key_t<T>>(bin) << level.shift;
  } else if (level.segment == 1) {
    s.hash[r] |= static_cast<uint32_t>(bin) << level.shift;
  } else {
    s.feature[r] |= static_cast<uint32_t>(bin) << level.shift;
  }
}

// Finds s.key[r], and with `ties` where ranks cut through ties, for s.count ranks in s.left. All
// threads of the block call it; s.left and s.count are set and visible. Whether the row has a NaN
// (known to all threads).
template <typename T, int kRanks, int kGroups>
__device__ bool select_row(RowSelection<T, kRanks, kGroups>& s, const T* row, int64_t f, bool ties,
                           rf_order order, uint64_t seed, int64_t sample, bool check_nan) {
  bool nan = false;
  if (check_nan) {
    for (int64_t i = threadIdx.x; i < f; i += kSelectThreads) nan |= is_nan(row[i]);
    nan = __syncthreads_or(nan);
  }
  for (int r = threadIdx.x; r < s.count; r += kSelectThreads) {
    s.key[r] = 0;
    s.hash[r] = s.feature[r] = 0;
    s.done[r] = s.split[r] = 0;
  }
  __syncthreads();
  constexpr int kKeyLevels = KeyOf<T>::kBits / 8, kLevels = kKeyLevels + 8;
  for (int l = 0; l < kLevels; ++l) {
    const DigitLevel level =
        l < kKeyLevels ? DigitLevel{0, 8 * (kKeyLevels - 1 - l)}
                       : DigitLevel{1 + (l - kKeyLevels) / 4, 24 - 8 * ((l - kKeyLevels) % 4)};
    if (threadIdx.x == 0) group_ranks(s);
    __syncthreads();
    const int groups = s.groups;
    if (groups == 0) break;
    for (int first = 0; first < groups; first += kGroups) {
      const int last = first + kGroups < groups ? first + kGroups : groups;
      for (int b = threadIdx.x; b < (last - first) * kBins; b += kSelectThreads)
        s.histogram[b / kBins][b % kBins] = 0;
      __syncthreads();
      if (level.segment == 0)
        count_digits<true>(s, row, f, level, first, last, seed, sample);
      else
        count_digits<false>(s, row, f, level, first, last, seed, sample);
      __syncthreads();
      for (int r = threadIdx.x / kWarp; r < s.count; r += kSelectThreads / kWarp) {
        const int g = s.group[r];
        if (g >= first && g < last) pick_digit(s, r, s.histogram[g - first], level);
      }
      __syncthreads();
    }
    const bool after_key = l == kKeyLevels - 1, after_hash = l == kKeyLevels + 3;
    if (!after_key && !after_hash) continue;
    for (int r = threadIdx.x; r < s.count; r += kSelectThreads) {
      if (s.done[r]) continue;
      if (after_key)
        s.split[r] = ties && (order == RF_MORF ? s.left[r] != 0 : s.left[r] + 1 != s.equal[r]);
      const bool finished = after_key ? !s.split[r] : s.equal[r] == 1;
      if (!finished) continue;
      s.done[r] = 1;
      if (after_hash) s.feature[r] = order == RF_MORF ? 0u : 0xffffffffu;
    }
    __syncthreads();
  }
  __syncthreads();
  return nan;
}

}  // namespace rf
