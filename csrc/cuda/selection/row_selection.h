// Order statistics of one row by one thread block: radix selection, eight bits
// at a time, for many ranks at once.
//
// Every feature has a composite key (value key, hash, feature number), all
// different, so a rank is one feature. The block descends digit by digit: ranks
// that agree so far form a group, each group gets a histogram of the next digit
// of the features in it, and each rank picks its bin. Hash digits are visited
// only by ranks that cut through ties, the feature number only where even
// hashes tie. A row is read once per digit (and per kGroups groups); any size
// works.
#pragma once

#include <cstdint>

#include "common/philox.h"
#include "common/selection.h"
#include "cuda/selection/order_key.h"
#include "cuda/support/launch.h"
#include "cuda/support/vectors.h"

namespace rf {

constexpr int kSelectThreads = 256, kBins = 256, kWarp = 32;

// The state of a selection, in shared memory. Ranks ascend. After select_row,
// `key` is the value's key; for ranks that cut through ties `split` is set, and
// (hash, feature) say where.
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
  key_t<T> prefix[kGroups];  // of the groups that are counted, and beyond them the largest key
  alignas(16) uint32_t histogram[kGroups][kBins];
};

// Adds a rank to an ascending list without repeats, where it is; ranks come
// ascending except that one may equal one of the last two (the upper neighbour
// of the percentile before).
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

// A thread takes kTogether neighbouring features at a time.
constexpr int kTogether = 4, kSelectStep = kTogether * kSelectThreads;

// body(i, value, inside) for the features of a row, all threads the same number
// of times: i is the feature's number, `inside` whether it exists. Rows that
// start aligned are read in fours.
template <typename T, typename Body>
__device__ __forceinline__ void for_features(const T* row, uint32_t f, const Body& body) {
  const bool fours = reinterpret_cast<uintptr_t>(row) % alignof(Four<T>) == 0;
  // Not `base += step` beyond f: f may be close to 2^32.
  for (uint32_t base = 0, left = f; left > 0;) {
    const uint32_t first = kTogether * threadIdx.x, i = base + first;
    Four<T> values{};
    if (fours && first + kTogether <= left) {
      values = *reinterpret_cast<const Four<T>*>(row + i);
    } else {
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        if (first + k < left) values.v[k] = row[i + k];
      }
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) body(i + k, values.v[k], first + k < left);
    const uint32_t done = left < kSelectStep ? left : kSelectStep;
    base += done, left -= done;
  }
}

// out[i] = byte_of(i, row[i]) for a row of bytes, stored in fours where it
// starts aligned.
template <typename T, typename ByteOf>
__device__ __forceinline__ void write_bytes(const T* row, uint8_t* out, uint32_t f,
                                            const ByteOf& byte_of) {
  const bool fours = reinterpret_cast<uintptr_t>(row) % alignof(Four<T>) == 0 &&
                     reinterpret_cast<uintptr_t>(out) % alignof(Four<uint8_t>) == 0;
  for (uint64_t i = kTogether * threadIdx.x; i < f; i += kSelectStep) {
    const uint32_t k = static_cast<uint32_t>(i);
    if (fours && i + kTogether <= f) {
      const Four<T> values = *reinterpret_cast<const Four<T>*>(row + k);
      Four<uint8_t> bytes;
#pragma unroll
      for (int j = 0; j < kTogether; ++j) bytes.v[j] = byte_of(k + j, values.v[j]);
      *reinterpret_cast<Four<uint8_t>*>(out + k) = bytes;
    } else {
      for (uint32_t j = k; j < k + kTogether && j < f; ++j) out[j] = byte_of(j, row[j]);
    }
  }
}

// Adds one to a bin of the histograms for every lane with bin >= 0. Leading
// digits of floats are often the same for a whole warp: one addition then does
// for all.
__device__ __forceinline__ void count_bin(uint32_t* histogram, int bin) {
  const int first_bin = __shfl_sync(0xffffffffu, bin, 0);
  if (__all_sync(0xffffffffu, bin == first_bin)) {
    if (threadIdx.x % kWarp == 0 && bin >= 0) atomicAdd(&histogram[bin], 32u);
  } else if (bin >= 0) {
    atomicAdd(&histogram[bin], 1u);
  }
}

// The first digit of all features; whether one of this thread is NaN.
template <typename T, int kRanks, int kGroups>
__device__ bool count_first_digits(RowSelection<T, kRanks, kGroups>& s, const T* row, uint32_t f) {
  bool nan = false;
  for_features(row, f, [&](uint32_t, T value, bool inside) {
    nan |= inside && is_nan(value);
    const int digit = static_cast<int>(order_key(value) >> (KeyOf<T>::kBits - 8));
    count_bin(s.histogram[0], inside ? digit : -1);
  });
  return nan;
}

// Value digits of the features that belong to groups [first, last), whose
// prefixes ascend.
template <typename T, int kRanks, int kGroups>
__device__ void count_value_digits(RowSelection<T, kRanks, kGroups>& s, const T* row, uint32_t f,
                                   int shift, int first, int last) {
  const bool one = last - first == 1;
  const key_t<T> only = s.prefix[0];
  for_features(row, f, [&](uint32_t, T value, bool inside) {
    const key_t<T> key = order_key(value), prefix = key >> (shift + 8);
    int g = 0;
    bool found = prefix == only;
    if (kGroups > 1 && !one) {  // the last group whose prefix is not above
#pragma unroll
      for (int step = kGroups / 2; step > 0; step /= 2) {
        if (s.prefix[g + step] <= prefix) g += step;
      }
      found = s.prefix[g] == prefix;
    }
    const int bin = g * kBins + static_cast<int>((key >> shift) & 255);
    count_bin(s.histogram[0], inside && found ? bin : -1);
  });
}

// Digits of hashes and feature numbers. Beside the value digits and not in one
// loop with them: nvcc would draw the random number of a tie for every feature.
template <typename T, int kRanks, int kGroups>
__device__ void count_tie_digits(RowSelection<T, kRanks, kGroups>& s, const T* row, uint32_t f,
                                 DigitLevel level, int first, int last, uint64_t seed,
                                 int64_t sample) {
  for_features(row, f, [&](uint32_t i, T value, bool inside) {
    const key_t<T> key = order_key(value);
    bool tied = false;
    for (int g = first; g < last; ++g) tied |= key == s.key[s.leader[g]];
    int bin = -1;  // group and digit
    if (inside && tied) {
      const uint32_t hash = philox_word(seed, sample, i, kDomainTieBreak);
      for (int g = first; g < last && bin < 0; ++g) {
        const int leader = s.leader[g];
        if (key != s.key[leader]) continue;
        if (level.segment == 1) {
          if (agrees(hash, s.hash[leader], level.shift, 32)) {
            bin = (g - first) * kBins + static_cast<int>((hash >> level.shift) & 255);
          }
        } else if (hash == s.hash[leader] && agrees(i, s.feature[leader], level.shift, 32)) {
          bin = (g - first) * kBins + static_cast<int>((i >> level.shift) & 255);
        }
      }
    }
    count_bin(s.histogram[0], bin);
  });
}

// One warp: the digit of rank r from the histogram of its group, 8 bins per
// lane.
template <typename T, int kRanks, int kGroups>
__device__ void pick_digit(RowSelection<T, kRanks, kGroups>& s, int r, const uint32_t* histogram,
                           DigitLevel level) {
  const int lane = threadIdx.x % kWarp;
  constexpr int kPerLane = kBins / kWarp;
  // In fours: single words would be eight lanes to a bank.
  const Four<uint32_t>* fours = reinterpret_cast<const Four<uint32_t>*>(histogram) + 2 * lane;
  uint32_t sum = 0;
#pragma unroll
  for (int b = 0; b < kPerLane; ++b) sum += fours[b / 4].v[b % 4];
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

// Finds s.key[r], and with `ties` where ranks cut through ties, for s.count
// ranks in s.left. All threads of the block call it; s.left and s.count are set
// and visible. Whether the row has a NaN (known to all threads).
template <typename T, int kRanks, int kGroups>
__device__ bool select_row(RowSelection<T, kRanks, kGroups>& s, const T* row, int64_t f, bool ties,
                           rf_order order, uint64_t seed, int64_t sample, bool check_nan) {
  bool nan = false;
  const uint32_t features = static_cast<uint32_t>(f);
  if (check_nan && s.count == 0) {  // no digit is looked at below
    for_features(row, features,
                 [&](uint32_t, T value, bool inside) { nan |= inside && is_nan(value); });
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
      if (l > 0 && level.segment == 0 && threadIdx.x < kGroups) {
        const int g = first + static_cast<int>(threadIdx.x);
        s.prefix[threadIdx.x] = g < last ? s.key[s.leader[g]] >> (level.shift + 8) : ~key_t<T>{0};
      }
      __syncthreads();
      if (l == 0) {
        nan = count_first_digits(s, row, features);
      } else if (level.segment == 0) {
        count_value_digits(s, row, features, level.shift, first, last);
      } else {
        count_tie_digits(s, row, features, level, first, last, seed, sample);
      }
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
  return __syncthreads_or(check_nan && nan);
}

}  // namespace rf
