// Values spread over 256 buckets: which bucket each is in, how many there are, which values are in
// some of them, and codes from bucket numbers.
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
#include <limits>

#include "cpu/pack_bytes.h"

namespace rf {

// Which bucket a value falls into.
template <typename V>
class BucketMap {
 public:
  static constexpr int kBuckets = 256, kCopies = 4;

  // Buckets for the values between low and high, a quarter of which are below and above the
  // quartiles; if these crowd at one end, the tails are heavy.
  BucketMap(V low, V first_quartile, V third_quartile, V high)
      : low_(low), high_(high), scale_(static_cast<V>(kBuckets) / (high - low)) {
    const V shortest = (high - low) * V(0.05);
    linear_ = std::isfinite(high - low) && std::isfinite(scale_) &&
              first_quartile - low > shortest && high - third_quartile > shortest;
    low_key_ = keys_of(Values{} + low);
    high_key_ = keys_of(Values{} + high);
    const Unsigned keys = static_cast<Unsigned>(high_key_[0]) - static_cast<Unsigned>(low_key_[0]);
    // Keys of at most 8 bits are left.
    shift_ = std::max(0, 56 - __builtin_clzll(static_cast<uint64_t>(keys) | 1));
  }

  // ids[i]: the bucket of x[i].
  void find(const V* x, int64_t n, uint8_t* ids) const {
    choose([&](const auto& map) { find_by(x, n, ids, map, [](int64_t) {}); });
  }

  // Not by memset: single stores go on beside what follows.
  static void clear(uint32_t* copies) {
    using Counts = typename Register<uint32_t>::type;
    for (int b = 0; b < kCopies * kBuckets; b += Register<uint32_t>::kLanes)
      store_as(copies + b, in_register(Counts{}));
  }

  // Also adds up how many values are in each bucket, in `copies` (kCopies x kBuckets numbers, the
  // first kBuckets of which are the result), and returns whether there is a NaN. In one pass:
  // counting waits for stores, the rest for memory and arithmetic. Ids are counted some time after
  // they are written, because reading them at once would wait for that.
  bool find_and_count(const V* x, int64_t n, uint8_t* ids, uint32_t* copies) const {
    constexpr int64_t kLag = 2 * kStep;
    auto nan = Values{} != Values{};
    choose([&](const auto& map) {
      auto found = nan;
      const auto checked = [&](Values v) __attribute__((always_inline)) {
        found |= v != v;
        return map(v);
      };
      find_by(x, n, ids, checked, [=](int64_t i) __attribute__((always_inline)) {
        if (i >= kLag) count_ids(ids + i - kLag, kStep, copies);
      });
      nan = found;
    });
    const int64_t counted = std::max<int64_t>(0, n / kStep * kStep - kLag);
    count_ids(ids + counted, n - counted, copies);
    for (int b = 0; b < kBuckets; ++b) {
      for (int copy = 1; copy < kCopies; ++copy) copies[b] += copies[copy * kBuckets + b];
    }
    bool any = false;
    for (int lane = 0; lane < Register<V>::kLanes; ++lane) any |= nan[lane] != 0;
    return any;
  }

 private:
  using Values = typename Register<V>::type;
  typedef decltype(Values{} < Values{}) Keys;  // signed integers of the same width
  using Unsigned = std::conditional_t<sizeof(V) == 8, uint64_t, uint32_t>;
  typedef Unsigned Distances __attribute__((vector_size(sizeof(Keys))));
  static constexpr int64_t kStep = 32;

  template <typename Use>
  void choose(const Use& use) const {
    // A copy: stores of bytes might change the members, for all that the compiler knows.
    const BucketMap map = *this;
    linear_ ? use([map](Values v) __attribute__((always_inline)) { return map.by_value(v); })
            : use([map](Values v) __attribute__((always_inline)) { return map.by_key(v); });
  }

  // Calls also(i) with every whole group of ids, ids + i.
  template <typename Map, typename Also>
  __attribute__((always_inline)) static void find_by(const V* x, int64_t n, uint8_t* ids,
                                                     const Map& map, const Also& also) {
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      map_to_bytes(x + i, ids + i, map);
      also(i);
    }
    if (i == n) return;
    V rest[kStep] = {};
    uint8_t rest_ids[kStep];
    std::memcpy(rest, x + i, (n - i) * sizeof(V));
    map_to_bytes(rest, rest_ids, map);
    std::memcpy(ids + i, rest_ids, n - i);
  }

  // In interleaved copies: neighbours often share a bucket, and waiting for the previous increment
  // of the same counter would cost more than the counting.
  __attribute__((always_inline)) static void count_ids(const uint8_t* ids, int64_t size,
                                                       uint32_t* copies) {
    uint32_t *const h0 = copies, *const h1 = h0 + kBuckets, *const h2 = h1 + kBuckets,
                    *const h3 = h2 + kBuckets;
    int64_t i = 0;
    for (; i + 8 <= size; i += 8) {
      const uint64_t eight = load_as<uint64_t>(ids + i);
      ++h0[eight & 0xff];
      ++h1[(eight >> 8) & 0xff];
      ++h2[(eight >> 16) & 0xff];
      ++h3[(eight >> 24) & 0xff];
      ++h0[(eight >> 32) & 0xff];
      ++h1[(eight >> 40) & 0xff];
      ++h2[(eight >> 48) & 0xff];
      ++h3[eight >> 56];
    }
    for (; i < size; ++i) ++h0[ids[i]];
  }

  __attribute__((always_inline)) Values by_value(Values x) const {
    x = min_of(max_of(x, Values{} + low_), Values{} + high_);
    return (x - low_) * scale_;
  }

  __attribute__((always_inline)) Keys by_key(Values x) const {
    Keys key = keys_of(x);
    key = key > low_key_ ? key : low_key_;
    key = key < high_key_ ? key : high_key_;
    // Unsigned: the keys may be further apart than a signed number can tell.
    const Distances away = reinterpret_cast<Distances>(key) - reinterpret_cast<Distances>(low_key_);
    return reinterpret_cast<Keys>(away >> shift_);
  }

  // Integers in the order of the values; adding 0 makes -0 and +0 one key.
  __attribute__((always_inline)) static Keys keys_of(Values x) {
    const Keys bits = reinterpret_cast<Keys>(x + V(0)), sign = bits < 0;
    return bits ^ (sign & std::numeric_limits<std::decay_t<decltype(bits[0])>>::max());
  }

  V low_, high_, scale_;
  bool linear_;
  Keys low_key_, high_key_;
  int shift_ = 0;
};

constexpr int kFewBuckets = 24;

// codes[i] = base + how many of up to kFewBuckets buckets are above (MoRF) or below (LeRF) ids[i].
// Not inlined: GCC vectorises it reliably only where it sees nothing else.
template <bool morf>
__attribute__((noinline)) void count_bucket_edges(const uint8_t* ids, int64_t n,
                                                  const uint8_t* buckets, int count, uint8_t base,
                                                  uint8_t* codes) {
  using Bytes = typename Register<int8_t>::type;
  constexpr int64_t kLanes = Register<int8_t>::kLanes, kVectors = 4;
  // There are no unsigned comparisons below AVX-512: flipping the top bit makes them signed.
  const auto flip = [](uint8_t b) { return static_cast<int8_t>(b ^ 0x80); };
  Bytes edges[kFewBuckets];
  for (int j = 0; j < count; ++j) edges[j] = Bytes{} + flip(buckets[j]);
  int64_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    Bytes id[kVectors], stays[kVectors];
    for (int k = 0; k < kVectors; ++k) {
      id[k] = load_as<Bytes>(ids + i + k * kLanes) ^ flip(0);
      stays[k] = Bytes{} + static_cast<int8_t>(base);
    }
    for (int j = 0; j < count; ++j) {
      const Bytes edge = edges[j];
      for (int k = 0; k < kVectors; ++k) stays[k] -= morf ? id[k] < edge : id[k] > edge;
    }
    for (int k = 0; k < kVectors; ++k) store_as(codes + i + k * kLanes, stays[k]);
  }
  for (; i < n; ++i) {
    uint8_t stays = base;
    for (int j = 0; j < count; ++j) stays += morf ? ids[i] < buckets[j] : ids[i] > buckets[j];
    codes[i] = stays;
  }
}

// Some of the 256 buckets, and which ids are among them.
class BucketSet {
 public:
  static constexpr int kBatch = 64;  // ids looked at together

  void add(int bucket) {
    // A row for the low half of the id, a bit for the high half; eight bits to a table.
    tables_[bucket >> 7][bucket & 15] |= static_cast<uint8_t>(1 << ((bucket >> 4) & 7));
  }
  bool has(int bucket) const {
    return tables_[bucket >> 7][bucket & 15] >> ((bucket >> 4) & 7) & 1;
  }

  // Which of ids[0 .. kBatch) are in the set, as bits.
  uint64_t find(const uint8_t* ids) const {
#ifdef __AVX2__
    return find32(ids) | static_cast<uint64_t>(find32(ids + 32)) << 32;
#else
    uint64_t bits = 0;
    for (int i = 0; i < kBatch; ++i) bits |= static_cast<uint64_t>(has(ids[i])) << i;
    return bits;
#endif
  }

 private:
#ifdef __AVX2__
  // Bytes are looked up in tables of sixteen, whatever the number of buckets in the set.
  __attribute__((always_inline)) uint32_t find32(const uint8_t* ids) const {
    const auto twice = [](const void* table) __attribute__((always_inline)) {
      return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(table)));
    };
    const __m256i id = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ids));
    const __m256i half = _mm256_set1_epi8(15), low = _mm256_and_si256(id, half),
                  high = _mm256_and_si256(_mm256_srli_epi16(id, 4), half);
    const __m256i rows = _mm256_blendv_epi8(_mm256_shuffle_epi8(twice(tables_[0]), low),
                                            _mm256_shuffle_epi8(twice(tables_[1]), low), id);
    const __m256i bit =
        _mm256_shuffle_epi8(_mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u)), high);
    const __m256i found = _mm256_cmpeq_epi8(_mm256_and_si256(rows, bit), bit);
    return static_cast<uint32_t>(_mm256_movemask_epi8(found));
  }
#endif

  uint8_t tables_[2][16] = {};
};

}  // namespace rf
