// Pieces of selection: the range of a row, counting below a pivot, and the value at a rank of a few
// values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace rf {

// The value at one rank, how many values of the row are smaller, and how many are equal to it.
template <typename V>
struct OrderStatistic {
  V value;
  int64_t smaller, equal;
};

template <typename V>
struct RowRange {
  V low, high;
  bool has_nan;
};

// Smallest and largest value; a NaN is noticed. Written with vector types, since GCC reduces floats
// lane by lane only where it is told to.
template <typename V>
RowRange<V> row_range(const V* x, int64_t n) {
  constexpr int kLanes = 32 / sizeof(V), kVectors = 2;
  typedef V Vector __attribute__((vector_size(32), aligned(sizeof(V)), may_alias));
  Vector low[kVectors], high[kVectors];
  for (int k = 0; k < kVectors; ++k) low[k] = high[k] = Vector{} + x[0];
  auto nan = low[0] != low[0];
  int64_t i = 0;
  for (; i + kLanes * kVectors <= n; i += kLanes * kVectors) {
    for (int k = 0; k < kVectors; ++k) {
      const Vector v = *reinterpret_cast<const Vector*>(x + i + kLanes * k);
      low[k] = v < low[k] ? v : low[k];
      high[k] = v > high[k] ? v : high[k];
      nan |= v != v;
    }
  }
  RowRange<V> r{x[0], x[0], false};
  const auto include = [&r](V a, V b) {
    r.low = std::min(r.low, a);
    r.high = std::max(r.high, b);
  };
  for (int l = 0; l < kLanes; ++l) {
    for (int k = 0; k < kVectors; ++k) include(low[k][l], high[k][l]);
    r.has_nan |= nan[l] != 0;
  }
  for (; i < n; ++i) {
    include(x[i], x[i]);
    r.has_nan |= x[i] != x[i];
  }
  return r;
}

// How many of x[0..n) are smaller than and equal to the pivot.
template <typename V>
void count_below(const V* x, int64_t n, V pivot, int64_t* smaller, int64_t* equal) {
  constexpr int64_t kBlock = 1 << 20;  // so that 32-bit counters, which vectorise, cannot overflow
  *smaller = *equal = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    int32_t s = 0, e = 0;
    for (int64_t i = begin; i < end; ++i) {
      s += x[i] < pivot;
      e += x[i] == pivot;
    }
    *smaller += s;
    *equal += e;
  }
}

constexpr int64_t kFew = 32;

// The value at `rank` among at most kFew: try one after the other, each compared with all at once.
// NaN compares false with everything, so it pads.
template <typename V>
OrderStatistic<V> select_few(V* x, int64_t n, int64_t rank) {
  if constexpr (std::is_floating_point_v<V>) {
    V padded[kFew];
    for (int64_t l = 0; l < kFew; ++l)
      padded[l] = l < n ? x[l] : std::numeric_limits<V>::quiet_NaN();
    for (int64_t i = 0; i < n; ++i) {
      const V v = x[i];
      int32_t smaller = 0, equal = 0;
      for (int64_t l = 0; l < kFew; ++l) {
        smaller += padded[l] < v;
        equal += padded[l] == v;
      }
      if (rank >= smaller && rank < smaller + equal) return {v, smaller, equal};
    }
  }
  std::sort(x, x + n);
  const auto equal = std::equal_range(x, x + n, x[rank]);
  return {x[rank], equal.first - x, equal.second - equal.first};
}

// The value at `rank` among x[0..n), in which x is overwritten: quickselect with three-way
// counting, so that constant and heavily tied data end after one round.
template <typename V>
OrderStatistic<V> select_in_place(V* x, int64_t n, int64_t rank) {
  int64_t skipped = 0;
  while (n > kFew) {
    // The pivot is the sample's value at the same relative rank: it ends close to the wanted one.
    constexpr int kSample = 15;
    V sample[kSample];
    for (int s = 0; s < kSample; ++s) sample[s] = x[(n - 1) * s / (kSample - 1)];
    for (int i = 1; i < kSample; ++i) {
      const V v = sample[i];
      int j = i;
      for (; j > 0 && v < sample[j - 1]; --j) sample[j] = sample[j - 1];
      sample[j] = v;
    }
    const V pivot = sample[rank * kSample / n];
    int64_t smaller, equal;
    count_below(x, n, pivot, &smaller, &equal);
    if (rank >= smaller && rank < smaller + equal) return {pivot, skipped + smaller, equal};
    const bool below = rank < smaller;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      const V v = x[i];
      x[kept] = v;
      kept += below ? v < pivot : pivot < v;
    }
    if (!below) {
      skipped += smaller + equal;
      rank -= smaller + equal;
    }
    n = kept;
  }
  OrderStatistic<V> r = select_few(x, n, rank);
  r.smaller += skipped;
  return r;
}

}  // namespace rf
