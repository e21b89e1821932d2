// Order statistics of one row without sorting it: one pass finds the range, one spreads the values
// over a few hundred buckets and counts them, one collects the buckets that hold wanted ranks;
// those few values are searched.
//
// Values map to buckets by a non-decreasing function, so buckets are ordered as values are, and any
// choice of the function is exact. Linear in the value suits most maps; heavy tails (squared
// gradients) would all fall into one bucket, so there it is linear in the bit pattern, which is
// about logarithmic.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "cpu/arena.h"
#include "cpu/select_values.h"

namespace rf {

// Unsigned keys in the order of the values; adding 0 makes -0 and +0 one key.
inline uint32_t order_key(float v) {
  v += 0.0f;
  uint32_t u;
  std::memcpy(&u, &v, 4);
  return u ^ (static_cast<uint32_t>(static_cast<int32_t>(u) >> 31) | 0x80000000u);
}
inline uint64_t order_key(double v) {
  v += 0.0;
  uint64_t u;
  std::memcpy(&u, &v, 8);
  return u ^ (static_cast<uint64_t>(static_cast<int64_t>(u) >> 63) | 0x8000000000000000ull);
}

template <typename V>
struct RowRange {
  V low, high;
  bool has_nan;
};

// Whether there is a NaN, and if asked for the smallest and largest value. Written with vector
// types, since GCC reduces floats lane by lane only where it is told to.
template <bool with_ends, typename V>
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
      if constexpr (with_ends) {
        low[k] = v < low[k] ? v : low[k];
        high[k] = v > high[k] ? v : high[k];
      }
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

// Selects several ranks of a row. All memory comes from outside; see scratch_bytes.
template <typename V>
class RowSelector {
 public:
  static constexpr int kMaxBuckets = 1024, kCopies = 4;
  static constexpr int kBlockBuckets = 16;
  RowSelector(Arena& arena, int64_t n, int64_t max_ranks) {
    histogram_ = arena.take<uint32_t>(kCopies * kMaxBuckets);
    slot_ = arena.take<int16_t>(kMaxBuckets);
    ids_ = arena.take<uint16_t>(n);
    collected_ = arena.take<V>(n + kCompressSlack);
    work_ = arena.take<V>(n + kCompressSlack);
    spare_ = arena.take<V>(n + kCompressSlack);
    wanted_ = arena.take<Wanted>(max_ranks);
  }

  // out[r] for the ascending ranks[r] of x[0..n), which has no NaN and the given range.
  void select(const V* x, int64_t n, const RowRange<V>& range, const int64_t* ranks, int count,
              OrderStatistic<V>* out) {
    if (count <= 2) return select_few(x, n, ranks, count, out);
    if (range.low == range.high) {
      for (int r = 0; r < count; ++r) out[r] = {range.low, 0, n};
      return;
    }
    buckets_ = n >= 8192 ? kMaxBuckets : count > 4 ? 512 : 256;
    int first = 0, last = count;
    settle_common_value(x, n, ranks, &first, &last, out);
    if (first == last) return;
    spread(x, n, range);
    find_buckets(ranks + first, last - first);
    collect(x, n);
    for (int r = first; r < last; ++r) {
      const Wanted& b = wanted_[r - first];
      const bool same_as_before = r > first && wanted_[r - first - 1].start == b.start;
      if (same_as_before && ranks[r] < out[r - 1].smaller + out[r - 1].equal) {
        out[r] = out[r - 1];  // one more rank within the same ties
        continue;
      }
      out[r] = select_rank(collected_ + b.start, b.size, ranks[r] - b.before, work_, spare_);
      out[r].smaller += b.before;
    }
  }

 private:
  // Where the bucket that holds one wanted rank begins: in the row by rank, and in `collected_`.
  struct Wanted {
    int64_t before, size, start;
    int bucket;
  };

  // One or two ranks, which are neighbours if they are the ends of an interpolation.
  void select_few(const V* x, int64_t n, const int64_t* ranks, int count, OrderStatistic<V>* out) {
    if (count == 0) return;
    const bool neighbours = count == 2 && ranks[1] - ranks[0] == 1;
    out[0] = select_rank(x, n, ranks[0], collected_, work_, false, neighbours ? out + 1 : nullptr);
    if (count == 2 && !neighbours) {
      out[1] = ranks[1] == ranks[0] ? out[0] : select_rank(x, n, ranks[1], collected_, work_);
    }
  }

  // Maps with one very common value (ReLU: zeros) have most ranks within its ties, where counting
  // smaller and equal values is all it takes. Settles those ranks if they are the first or the
  // last; the others are [first, last).
  void settle_common_value(const V* x, int64_t n, const int64_t* ranks, int* first, int* last,
                           OrderStatistic<V>* out) {
    constexpr int kSample = 16;
    V sample[kSample];
    for (int s = 0; s < kSample; ++s) sample[s] = x[(n - 1) * s / (kSample - 1)];
    V common = sample[0];
    int votes = 0;
    for (int s = 0; s < kSample; ++s) {
      int same = 0;
      for (int o = 0; o < kSample; ++o) same += sample[o] == sample[s];
      if (same > votes) votes = same, common = sample[s];
    }
    if (votes < 4) return;
    OrderStatistic<V> s{common, 0, 0};
    count_below(x, n, common, &s.smaller, &s.equal);
    const auto tied = [&](int r) {
      return ranks[r] >= s.smaller && ranks[r] < s.smaller + s.equal;
    };
    while (*first < *last && tied(*first)) out[(*first)++] = s;
    while (*first < *last && tied(*last - 1)) out[--*last] = s;
  }

  // ids_[i] and the histogram, in interleaved copies: neighbours often share a bucket, and waiting
  // for the previous increment of the same counter would cost more than the counting.
  void spread(const V* x, int64_t n, const RowRange<V>& range) {
    const V span = range.high - range.low;
    const V scale = static_cast<V>(buckets_) / span;
    V deviation = 0;
    constexpr int kSample = 32;
    for (int s = 0; s < kSample; ++s) {
      deviation += std::abs(x[(n - 1) * s / (kSample - 1)] - x[(n - 1) / 2]);
    }
    const bool linear =
        std::isfinite(span) && std::isfinite(scale) && deviation > span * V(kSample / 24.0);
    std::memset(histogram_, 0, kCopies * buckets_ * sizeof(uint32_t));
    // Blocks, so that the ids are counted while they are in the first-level cache.
    constexpr int64_t kBlock = 2048;
    const int top = buckets_ - 1;
    uint16_t* const __restrict all_ids = ids_;
    const V low = range.low;
    const auto low_key = order_key(range.low);
    int shift = 0;
    while ((order_key(range.high) - low_key) >> shift > static_cast<decltype(low_key)>(top))
      ++shift;
    for (int64_t begin = 0; begin < n; begin += kBlock) {
      const int64_t end = std::min(n, begin + kBlock);
      if (linear) {
        for (int64_t i = begin; i < end; ++i) {
          const int32_t id = static_cast<int32_t>((x[i] - low) * scale);
          all_ids[i] = static_cast<uint16_t>(id < top ? id : top);
        }
      } else {
        for (int64_t i = begin; i < end; ++i) {
          all_ids[i] = static_cast<uint16_t>((order_key(x[i]) - low_key) >> shift);
        }
      }
      int64_t i = begin;
      uint32_t* const h0 = histogram_;
      uint32_t *const h1 = h0 + buckets_, *const h2 = h1 + buckets_, *const h3 = h2 + buckets_;
      for (; i + 4 <= end; i += 4) {
        uint64_t four;
        std::memcpy(&four, all_ids + i, 8);
        ++h0[four & 0xffff];
        ++h1[(four >> 16) & 0xffff];
        ++h2[(four >> 32) & 0xffff];
        ++h3[four >> 48];
      }
      for (; i < end; ++i) ++h0[all_ids[i]];
    }
  }

  void find_buckets(const int64_t* ranks, int count) {
    uint32_t* const h = histogram_;
    const int buckets = buckets_;
    uint32_t* const blocks = h + buckets;  // sums of kBlockBuckets, in place of the copies
    for (int b = 0; b < buckets; ++b)
      h[b] += h[buckets + b] + h[2 * buckets + b] + h[3 * buckets + b];
    for (int k = 0; k < buckets / kBlockBuckets; ++k) {
      uint32_t sum = 0;
      for (int b = 0; b < kBlockBuckets; ++b) sum += h[k * kBlockBuckets + b];
      blocks[k] = sum;
    }
    int64_t before = 0, start = 0;
    int bucket = 0, previous = -1;
    for (int r = 0; r < count; ++r) {
      while (before + h[bucket] <= ranks[r]) {
        before += h[bucket++];
        if (bucket % kBlockBuckets != 0) continue;
        while (before + blocks[bucket / kBlockBuckets] <= ranks[r]) {
          before += blocks[bucket / kBlockBuckets];
          bucket += kBlockBuckets;
        }
      }
      wanted_[r] = {before, static_cast<int64_t>(histogram_[bucket]), start, bucket};
      if (bucket != previous && previous >= 0) {
        start += histogram_[previous];
        wanted_[r].start = start;
      }
      previous = bucket;
    }
    count_ = count;
  }

  // Copies the wanted buckets to `collected_`, each to its own stretch. Few values are wanted, so
  // vectors of ids are compared with them and only the hits are visited.
  void collect(const V* x, int64_t n) {
    uint32_t* next = histogram_ + buckets_;  // the copies are free again
    constexpr int kFewBuckets = 12;
    uint16_t few[kFewBuckets];
    int distinct = 0;
    std::memset(slot_, 0xff, buckets_ * sizeof(int16_t));
    for (int r = 0; r < count_; ++r) {
      int16_t& slot = slot_[wanted_[r].bucket];
      if (slot >= 0) continue;
      if (distinct < kFewBuckets) few[distinct] = static_cast<uint16_t>(wanted_[r].bucket);
      slot = static_cast<int16_t>(distinct);
      next[distinct++] = static_cast<uint32_t>(wanted_[r].start);
    }
    const bool is_few = distinct <= kFewBuckets;
    const int16_t* const slots = slot_;
    V* const collected = collected_;
    int64_t begin = 0;
    for (; is_few && begin + kChunk <= n; begin += kChunk) {
      const uint16_t* ids = ids_ + begin;
      for (uint64_t hits = hits_of(ids, few, distinct); hits != 0; hits &= hits - 1) {
        const int i = __builtin_ctzll(hits);
        collected[next[slots[ids[i]]]++] = x[begin + i];
      }
    }
    for (; begin < n; ++begin) {
      const int16_t slot = slots[ids_[begin]];
      if (slot >= 0) collected[next[slot]++] = x[begin];
    }
  }

  static constexpr int64_t kChunk = 64;

  // Which of kChunk ids are one of the buckets, as bits.
  static uint64_t hits_of(const uint16_t* ids, const uint16_t* buckets, int count) {
    typedef uint16_t Vector __attribute__((vector_size(32), aligned(2), may_alias));
    const Vector* v = reinterpret_cast<const Vector*>(ids);
    auto hit0 = v[0] == buckets[0], hit1 = v[1] == buckets[0], hit2 = v[2] == buckets[0],
         hit3 = v[3] == buckets[0];
    for (int d = 1; d < count; ++d) {
      hit0 |= v[0] == buckets[d];
      hit1 |= v[1] == buckets[d];
      hit2 |= v[2] == buckets[d];
      hit3 |= v[3] == buckets[d];
    }
#ifdef __AVX2__
    const auto bits =
        [](auto a,
           auto b) {  // one bit per 16-bit lane; packing works within halves, so put them in order
          const __m256i packed =
              _mm256_packs_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
          return static_cast<uint64_t>(
              static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(packed, 0xd8))));
        };
    return bits(hit0, hit1) | bits(hit2, hit3) << 32;
#else
    int16_t lanes[kChunk];
    std::memcpy(lanes, &hit0, 32);
    std::memcpy(lanes + 16, &hit1, 32);
    std::memcpy(lanes + 32, &hit2, 32);
    std::memcpy(lanes + 48, &hit3, 32);
    uint64_t any = 0;
    for (int i = 0; i < kChunk; ++i) any |= static_cast<uint64_t>(lanes[i] & 1) << i;
    return any;
#endif
  }

  uint32_t* histogram_;  // [kCopies, buckets_]
  int16_t* slot_;        // [buckets_] which wanted bucket this is, -1 for none
  uint16_t* ids_;        // [n] the bucket of each value
  V *collected_, *work_, *spare_;
  Wanted* wanted_;
  int buckets_ = 0, count_ = 0;
};

}  // namespace rf
