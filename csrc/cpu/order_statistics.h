// Order statistics of one row without sorting it. Up to three ranks are narrowed down to; for more,
// one pass spreads the values over 256 buckets and counts them, and one collects the buckets that
// hold wanted ranks; those few values are searched.
//
// Values map to buckets by a non-decreasing function, so buckets are ordered as values are, and any
// choice of the function is exact. It is taken from a sample: linear in the value over the wanted
// ranks suits most maps; heavy tails (squared gradients) would all fall into one bucket, so there
// it is linear in the bit pattern, which is about logarithmic.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cpu/arena.h"
#include "cpu/pack_bytes.h"
#include "cpu/row_writers.h"
#include "cpu/select_values.h"

namespace rf {

// Which bucket a value falls into.
template <typename V>
class BucketMap {
 public:
  static constexpr int kBuckets = 256;

  // Buckets for the values between low and high, a quarter of which are below and above the
  // quartiles; if these crowd at one end, the tails are heavy.
  BucketMap(V low, V first_quartile, V third_quartile, V high)
      : low_(low), scale_(static_cast<V>(kBuckets) / (high - low)) {
    const V shortest = (high - low) * V(0.05);
    linear_ = std::isfinite(high - low) && std::isfinite(scale_) &&
              first_quartile - low > shortest && high - third_quartile > shortest;
    low_key_ = keys_of(Values{} + low);
    high_key_ = keys_of(Values{} + high);
    using Unsigned = std::conditional_t<sizeof(V) == 8, uint64_t, uint32_t>;
    const Unsigned keys = static_cast<Unsigned>(high_key_[0]) - static_cast<Unsigned>(low_key_[0]);
    while (keys >> shift_ >= kBuckets) ++shift_;
  }

  void find(const V* x, int64_t n, uint8_t* ids) const {
    linear_ ? find_by(x, n, ids, [this](Values v) { return by_value(v); })
            : find_by(x, n, ids, [this](Values v) { return by_key(v); });
  }

 private:
  using Values = typename Register<V>::type;
  typedef decltype(Values{} < Values{}) Keys;  // signed integers of the same width
  static constexpr int64_t kStep = 32;

  template <typename Map>
  static void find_by(const V* x, int64_t n, uint8_t* ids, const Map& map) {
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) map_to_bytes(x + i, ids + i, map);
    if (i == n) return;
    V rest[kStep] = {};
    uint8_t rest_ids[kStep];
    std::memcpy(rest, x + i, (n - i) * sizeof(V));
    map_to_bytes(rest, rest_ids, map);
    std::memcpy(ids + i, rest_ids, n - i);
  }

  __attribute__((always_inline)) Values by_value(Values x) const {
    const Values id = max_of((x - low_) * scale_, Values{}), top = Values{} + V(kBuckets - 1);
    return id < top ? id : top;
  }

  __attribute__((always_inline)) Keys by_key(Values x) const {
    Keys key = keys_of(x);
    key = key > low_key_ ? key : low_key_;
    key = key < high_key_ ? key : high_key_;
    return ((key - low_key_) >> shift_) & (kBuckets - 1);  // the mask makes the shift unsigned
  }

  // Integers in the order of the values; adding 0 makes -0 and +0 one key.
  __attribute__((always_inline)) static Keys keys_of(Values x) {
    const Keys bits = reinterpret_cast<Keys>(x + V(0)), sign = bits < 0;
    return bits ^ (sign & std::numeric_limits<std::decay_t<decltype(bits[0])>>::max());
  }

  V low_, scale_;
  bool linear_;
  Keys low_key_, high_key_;
  int shift_ = 0;
};

// codes[i] = base + how many of the buckets are above (MoRF) or below (LeRF) ids[i]. Not inlined:
// GCC vectorises it reliably only where it sees nothing else.
template <bool morf>
__attribute__((noinline)) void count_bucket_edges(const uint8_t* ids, int64_t n,
                                                  const uint8_t* buckets, int count, uint8_t base,
                                                  uint8_t* codes) {
  using Bytes = typename Register<int8_t>::type;
  constexpr int64_t kLanes = Register<int8_t>::kLanes;
  // There are no unsigned comparisons below AVX-512: flipping the top bit makes them signed.
  const auto flip = [](uint8_t b) { return static_cast<int8_t>(b ^ 0x80); };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const Bytes a = load_as<Bytes>(ids + i) ^ flip(0),
                b = load_as<Bytes>(ids + i + kLanes) ^ flip(0);
    Bytes stays_a = Bytes{} + static_cast<int8_t>(base), stays_b = stays_a;
    for (int j = 0; j < count; ++j) {
      const int8_t bucket = flip(buckets[j]);
      stays_a -= morf ? a < bucket : a > bucket;
      stays_b -= morf ? b < bucket : b > bucket;
    }
    store_as(codes + i, stays_a);
    store_as(codes + i + kLanes, stays_b);
  }
  for (; i < n; ++i) {
    uint8_t stays = base;
    for (int j = 0; j < count; ++j) stays += morf ? ids[i] < buckets[j] : ids[i] > buckets[j];
    codes[i] = stays;
  }
}

// Selects several ranks of a row.
template <typename V>
class RowSelector {
 public:
  RowSelector(Arena& arena, int64_t n, int64_t max_ranks) {
    histogram_ = arena.take<uint32_t>(kCopies * kBuckets);
    ids_ = arena.take<uint8_t>(n);
    positions_ = arena.take<uint32_t>(n);
    for (V*& buffer : buffers_) buffer = arena.take<V>(n + kCompressSlack);
    wanted_ = arena.take<Wanted>(max_ranks);
  }

  // out[r] for the ascending ranks[r] of x[0..n), which has no NaN.
  void select(const V* x, int64_t n, const int64_t* ranks, int count, OrderStatistic<V>* out) {
    wanted_count_ = 0;
    complete_ = false;
    if (n <= kSample) x = static_cast<const V*>(std::memcpy(buffers_[2], x, n * sizeof(V)));
    if (groups_of(ranks, count) <= 3) return select_each(x, n, ranks, count, out);
    V sample[kSample];
    take_sample(x, n, kSample, sample);
    const FewValues<V> few(sample, kSample);
    int first = 0, last = count;
    if (few.tied_pairs() >= 6) settle_common_value(x, n, few, ranks, &first, &last, out);
    if (first == last) return;
    const auto sampled = [&](int64_t rank, int away) {
      const int64_t s = rank * kSample / n + away;
      return few.value_at(std::min<int64_t>(std::max<int64_t>(s, 0), kSample - 1));
    };
    const int64_t lowest = ranks[first], highest = ranks[last - 1],
                  quarter = (highest - lowest) / 4;
    map_ = BucketMap<V>(sampled(lowest, -3), sampled(lowest + quarter, 0),
                        sampled(highest - quarter, 0), sampled(highest, 3));
    map_.find(x, n, ids_);
    count_buckets(n);
    find_buckets(ranks + first, last - first, n / 8);
    collect(x, n);
    complete_ = first == 0 && last == count;
    search_collected(x, n, ranks + first, out + first);
  }

  // codes[i]: how many of the edges leave x[i] alone, for edges that were found by the last call of
  // select, or between two of its ranks. Buckets tell, except for the few collected values. False
  // if there are no such buckets.
  template <bool morf>
  bool count_edges(int64_t n, const V* edges, int count, uint8_t* codes) {
    uint8_t buckets[kFewBuckets];
    int nothing = 0;  // NaN removes nothing; these come first
    while (nothing < count && edges[nothing] != edges[nothing]) ++nothing;
    edges += nothing;
    count -= nothing;
    if (wanted_count_ == 0 || !complete_ || count > kFewBuckets) return false;
    map_.find(edges, count, buckets);
    for (int j = 0; j < count; ++j) {
      if (!wanted_buckets_[buckets[j]] && histogram_[buckets[j]] > 0) return false;
    }
    count_bucket_edges<morf>(ids_, n, buckets, count, static_cast<uint8_t>(nothing), codes);
    uint8_t* const exact = reinterpret_cast<uint8_t*>(buffers_[1]);
    count_bounds<morf>(buffers_[0], collected_, edges, count, exact);
    for (int64_t k = 0; k < collected_; ++k)
      codes[positions_[k]] = static_cast<uint8_t>(exact[k] + nothing);
    return true;
  }

 private:
  static constexpr int kBuckets = BucketMap<V>::kBuckets, kCopies = 4, kBlockBuckets = 16;
  static constexpr int kSample = FewValues<V>::kCapacity;

  // Where the bucket that holds one wanted rank begins: in the row by rank, and in what is
  // collected.
  struct Wanted {
    int64_t before, size, start;
    int bucket;
  };

  // How many searches it takes: neighbours, the ends of an interpolation, take one.
  static int groups_of(const int64_t* ranks, int count) {
    int groups = 0;
    for (int r = 0; r < count; ++groups) r += r + 1 < count && ranks[r + 1] - ranks[r] == 1 ? 2 : 1;
    return groups;
  }

  void select_each(const V* x, int64_t n, const int64_t* ranks, int count, OrderStatistic<V>* out) {
    for (int r = 0; r < count; ++r) {
      if (r > 0 && ranks[r] < out[r - 1].smaller + out[r - 1].equal) {
        out[r] = out[r - 1];
        continue;
      }
      const bool neighbours = r + 1 < count && ranks[r + 1] - ranks[r] == 1;
      out[r] = select_rank(x, n, ranks[r], buffers_[0], buffers_[1], false,
                           neighbours ? out + r + 1 : nullptr);
      r += neighbours;
    }
  }

  // Buckets are in order, so a rank of the row is a rank among all that is collected.
  void search_collected(const V* x, int64_t n, const int64_t* ranks, OrderStatistic<V>* out) {
    const auto search = [&](const auto& in_collected) {
      for (int r = 0; r < wanted_count_; ++r) {
        const Wanted& b = wanted_[r];
        if (r > 0 && ranks[r] < out[r - 1].smaller + out[r - 1].equal) {
          out[r] = out[r - 1];  // one more rank within the same ties
        } else if (b.size > crowd_) {
          out[r] = select_rank(x, n, ranks[r], buffers_[1], buffers_[2]);
        } else {
          out[r] = in_collected(b, ranks[r] - b.before);
          out[r].smaller += b.before;
        }
      }
    };
    if (collected_ <= kTogether) {
      const FewValues<V, kTogether> few(buffers_[0], collected_);
      search([&](const Wanted& b, int64_t rank) {
        OrderStatistic<V> s = few.at(b.start + rank);
        s.smaller -= b.start;
        return s;
      });
    } else {
      search([&](const Wanted& b, int64_t rank) {
        return select_rank(buffers_[0] + b.start, b.size, rank, buffers_[1], buffers_[2]);
      });
    }
  }

  // Maps with one very common value (ReLU: zeros) have most ranks within its ties, where counting
  // smaller and equal values is all it takes. Settles those ranks if they are the first or the
  // last; the others are [first, last).
  void settle_common_value(const V* x, int64_t n, const FewValues<V>& few, const int64_t* ranks,
                           int* first, int* last, OrderStatistic<V>* out) {
    OrderStatistic<V> s = few.at(0);
    for (int r = 4; r < kSample; r += 4) {
      const OrderStatistic<V> other = few.at(r);
      if (other.equal > s.equal) s = other;
    }
    if (s.equal < 4) return;
    count_below(x, n, s.value, &s.smaller, &s.equal);
    const auto tied = [&](int r) {
      return ranks[r] >= s.smaller && ranks[r] < s.smaller + s.equal;
    };
    while (*first < *last && tied(*first)) out[(*first)++] = s;
    while (*first < *last && tied(*last - 1)) out[--*last] = s;
  }

  // In interleaved copies: neighbours often share a bucket, and waiting for the previous increment
  // of the same counter would cost more than the counting.
  void count_buckets(int64_t n) {
    std::memset(histogram_, 0, kCopies * kBuckets * sizeof(uint32_t));
    uint32_t* const h0 = histogram_;
    uint32_t *const h1 = h0 + kBuckets, *const h2 = h1 + kBuckets, *const h3 = h2 + kBuckets;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
      uint64_t eight;
      std::memcpy(&eight, ids_ + i, 8);
      ++h0[eight & 0xff];
      ++h1[(eight >> 8) & 0xff];
      ++h2[(eight >> 16) & 0xff];
      ++h3[(eight >> 24) & 0xff];
      ++h0[(eight >> 32) & 0xff];
      ++h1[(eight >> 40) & 0xff];
      ++h2[(eight >> 48) & 0xff];
      ++h3[eight >> 56];
    }
    for (; i < n; ++i) ++h0[ids_[i]];
    for (int b = 0; b < kBuckets; ++b) h0[b] += h1[b] + h2[b] + h3[b];
  }

  void find_buckets(const int64_t* ranks, int count, int64_t crowd) {
    const uint32_t* const h = histogram_;
    uint32_t* const blocks = histogram_ + kBuckets;  // sums of kBlockBuckets, where copies were
    for (int k = 0; k < kBuckets / kBlockBuckets; ++k) {
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
      if (bucket != previous && previous >= 0 && h[previous] <= crowd) start += h[previous];
      wanted_[r] = {before, static_cast<int64_t>(h[bucket]), start, bucket};
      previous = bucket;
    }
    wanted_count_ = count;
    crowd_ = crowd;
  }

  // Copies the wanted buckets to buffers_[0], each to its own stretch, and their positions.
  // Few values are wanted, so vectors of ids are compared with them and only the hits are visited.
  void collect(const V* x, int64_t n) {
    uint32_t next[kBuckets];  // where the next value of a wanted bucket goes
    uint8_t buckets[kBuckets];
    std::memset(wanted_buckets_, 0, sizeof(wanted_buckets_));
    int distinct = 0;
    for (int r = 0; r < wanted_count_; ++r) {
      const int bucket = wanted_[r].bucket;
      if (wanted_buckets_[bucket] || wanted_[r].size > crowd_) continue;
      wanted_buckets_[bucket] = 1;
      next[bucket] = static_cast<uint32_t>(wanted_[r].start);
      buckets[distinct++] = static_cast<uint8_t>(bucket);
    }
    uint32_t* const hits = reinterpret_cast<uint32_t*>(buffers_[1]);
    int64_t begin = 0, count = 0;
    for (; distinct > 0 && distinct <= kFewBuckets && begin + kHitBytes <= n; begin += kHitBytes) {
      uint64_t left = hits_of(ids_ + begin, buckets, distinct);
      const int here = __builtin_popcountll(left);
      // Always four, without a branch; more are rare.
      for (int k = 0; k < 4 || k < here; ++k, left &= left - 1) {
        hits[count + k] = static_cast<uint32_t>(begin + __builtin_ctzll(left | kLastHit));
      }
      count += here;
    }
    for (; begin < n; ++begin) {
      hits[count] = static_cast<uint32_t>(begin);
      count += wanted_buckets_[ids_[begin]];
    }
    for (int64_t k = 0; k < count; ++k) {
      const uint32_t i = hits[k], to = next[ids_[i]]++;
      buffers_[0][to] = x[i];
      positions_[to] = i;
    }
    collected_ = count;
  }

  static constexpr int kFewBuckets = 24, kHitBytes = 64, kTogether = 64;
  static constexpr uint64_t kLastHit = uint64_t{1} << 63;

  // Which of kHitBytes ids are one of the buckets, as bits.
  static uint64_t hits_of(const uint8_t* ids, const uint8_t* buckets, int count) {
#ifdef __AVX2__
    typedef uint8_t Bytes __attribute__((vector_size(32)));
    const Bytes low = load_as<Bytes>(ids), high = load_as<Bytes>(ids + 32);
    auto low_hits = low == buckets[0], high_hits = high == buckets[0];
    for (int d = 1; d < count; ++d) {
      low_hits |= low == buckets[d];
      high_hits |= high == buckets[d];
    }
    const auto bits = [](auto mask) {
      return static_cast<uint32_t>(_mm256_movemask_epi8(reinterpret_cast<__m256i>(mask)));
    };
    return bits(low_hits) | static_cast<uint64_t>(bits(high_hits)) << 32;
#else
    uint8_t hit[kHitBytes];
    for (int i = 0; i < kHitBytes; ++i) hit[i] = ids[i] == buckets[0];
    for (int d = 1; d < count; ++d) {
      for (int i = 0; i < kHitBytes; ++i) hit[i] |= ids[i] == buckets[d];
    }
    uint64_t bits = 0;
    for (int w = 0; w < kHitBytes / 8; ++w) {  // gathers the lowest bits of eight bytes
      bits |= (load_as<uint64_t>(hit + 8 * w) * 0x0102040810204080u >> 56) << (8 * w);
    }
    return bits;
#endif
  }

  uint32_t* histogram_;  // [kCopies, kBuckets]
  uint8_t* ids_;         // [n] the bucket of each value
  uint32_t* positions_;  // [n] where the collected values are in the row
  V* buffers_[3];        // [n + kCompressSlack]; the first holds the collected values
  Wanted* wanted_;
  uint8_t wanted_buckets_[kBuckets];
  int wanted_count_ = 0;
  int64_t collected_ = 0;  // how many values are
  int64_t crowd_ = 0;      // buckets with more values than this are not collected
  bool complete_ = false;  // all ranks of the last selection are in buckets
  BucketMap<V> map_{0, 0, 0, 0};
};

}  // namespace rf
