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

#include "cpu/support/simd.h"

namespace rf {

// Which bucket a value falls into.
template <typename V>
class BucketMap {
 public:
  static constexpr int kBuckets = 256, kCopies = 2;

  // Buckets for the values between low and high, a quarter of which are below and above the
  // quartiles; if these crowd at one end, the tails are heavy. A bit more than between low and
  // high: they are from a sample, and a wanted value beyond them would share its bucket with many.
  BucketMap(V low, V first_quartile, V third_quartile, V high) {
    const V shortest = (high - low) * V(0.05);
    low_ = low - shortest;
    high_ = high + shortest;
    scale_ = static_cast<V>(kBuckets) / (high_ - low_);
    linear_ = std::isfinite(high_ - low_) && std::isfinite(scale_) &&
              first_quartile - low > shortest && high - third_quartile > shortest;
    low_key_ = keys_of(Values{} + low);
    high_key_ = keys_of(Values{} + high);
    const Unsigned keys = static_cast<Unsigned>(high_key_[0]) - static_cast<Unsigned>(low_key_[0]);
    // Distances of at most 16 bits are left, and all buckets used.
    shift_ = std::max(0, 48 - __builtin_clzll(static_cast<uint64_t>(keys) | 1));
    factor_ = ((kBuckets << 16) - 1) / (static_cast<uint32_t>(keys >> shift_) + 1);
  }

  // ids[i]: the bucket of x[i].
  void find(const V* x, int64_t n, uint8_t* ids) const {
    choose([&](const auto& map) { find_by(x, n, ids, map, [](int64_t) {}); });
  }

  // Sets the counters of find_and_count to zero; call it some time before. Not by memset: single
  // stores go on beside what follows.
  static void clear(uint32_t* copies) {
    using Counts = vector_t<uint32_t>;
    for (int b = 0; b < kCopies * kBuckets; b += Vector<uint32_t>::kLanes)
      store_as(copies + b, in_register(Counts{}));
  }

  // Also adds up how many values are in each bucket, in `copies` (kCopies x kBuckets zeros, the
  // first kBuckets of which become the result), and returns whether there is a NaN. In one pass:
  // counting waits for stores, the rest for memory and arithmetic. Ids are counted some time after
  // they are written, because reading them at once would wait for that.
  bool find_and_count(const V* x, int64_t n, uint8_t* ids, uint32_t* copies) const {
    constexpr int64_t kLag = 2 * kStep, kNear = 256 * 1024 / sizeof(V);
    const int64_t ahead = n <= kNear ? n : 0;  // the next row, which mostly follows, is fetched
    auto nan = Values{} != Values{};
    choose([&](const auto& map) {
      auto found = nan;
      const auto checked = [&](Values v) __attribute__((always_inline)) {
        found |= v != v;
        return map(v);
      };
      find_by(x, n, ids, checked, [=](int64_t i) __attribute__((always_inline)) {
        if (i >= kLag) count_ids(ids + i - kLag, kStep, copies);
        for (int64_t k = 0; k < kStep; k += 64 / sizeof(V)) __builtin_prefetch(x + i + k + ahead);
      });
      nan = found;
    });
    const int64_t counted = std::max<int64_t>(0, n / kStep * kStep - kLag);
    count_ids(ids + counted, n - counted, copies);
    for (int b = 0; b < kBuckets; ++b) {
      for (int copy = 1; copy < kCopies; ++copy) copies[b] += copies[copy * kBuckets + b];
    }
    bool any = false;
    for (int lane = 0; lane < Vector<V>::kLanes; ++lane) any |= nan[lane] != 0;
    return any;
  }

 private:
  using Values = vector_t<V>;
  typedef decltype(Values{} < Values{}) Keys;  // signed integers of the same width
  using Unsigned = std::conditional_t<sizeof(V) == 8, uint64_t, uint32_t>;
  using Distances = vector_t<Unsigned, sizeof(Keys)>;
  using Words = vector_t<uint32_t, sizeof(Keys)>;
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
    uint32_t *const h0 = copies, *const h1 = h0 + kBuckets;
    int64_t i = 0;
    for (; i + 8 <= size; i += 8) {
      const uint64_t eight = load_as<uint64_t>(ids + i);
      ++h0[eight & 0xff];
      ++h1[(eight >> 8) & 0xff];
      ++h0[(eight >> 16) & 0xff];
      ++h1[(eight >> 24) & 0xff];
      ++h0[(eight >> 32) & 0xff];
      ++h1[(eight >> 40) & 0xff];
      ++h0[(eight >> 48) & 0xff];
      ++h1[eight >> 56];
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
    // In 32 bits, which are enough, and quicker than 64.
    const Words scaled = reinterpret_cast<Words>(away >> shift_) * factor_;
    return reinterpret_cast<Keys>(scaled >> 16);
  }

  // Integers in the order of the values; adding 0 makes -0 and +0 one key.
  __attribute__((always_inline)) static Keys keys_of(Values x) {
    const Keys bits = reinterpret_cast<Keys>(x + V(0)), sign = bits < 0;
    return bits ^ (sign & std::numeric_limits<std::decay_t<decltype(bits[0])>>::max());
  }

  V low_, high_, scale_;
  bool linear_;
  Keys low_key_, high_key_;
  int shift_;
  uint32_t factor_;
};

constexpr int kFewBuckets = 24;

// codes[i] = base + how many of up to kFewBuckets buckets are above (MoRF) or below (LeRF) ids[i].
// Not inlined: GCC vectorises it reliably only where it sees nothing else.
template <bool morf>
__attribute__((noinline)) void count_bucket_edges(const uint8_t* ids, int64_t n,
                                                  const uint8_t* buckets, int count, uint8_t base,
                                                  uint8_t* codes) {
  using Bytes = vector_t<int8_t>;
  constexpr int64_t kLanes = Vector<int8_t>::kLanes, kVectors = 4;
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

#ifdef __AVX2__
  void add(int bucket) {
    // A row for the low half of the id, a bit for the high half; eight bits to a table.
    tables_[bucket >> 7][bucket & 15] |= static_cast<uint8_t>(1 << ((bucket >> 4) & 7));
  }
  bool has(int bucket) const {
    return tables_[bucket >> 7][bucket & 15] >> ((bucket >> 4) & 7) & 1;
  }
#else
  void add(int bucket) { has_[bucket] = 1; }
  bool has(int bucket) const { return has_[bucket]; }
#endif

  // Which of ids[0 .. kBatch) are in the set, as bits.
  uint64_t find(const uint8_t* ids) const {
#ifdef __AVX2__
    return find32(ids) | static_cast<uint64_t>(find32(ids + 32)) << 32;
#else
    uint64_t bits = 0;
    for (int i = 0; i < kBatch; ++i) bits |= static_cast<uint64_t>(has_[ids[i]]) << i;
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

  uint8_t tables_[2][16] = {};
#else
  uint8_t has_[256] = {};
#endif
};

// For some buckets, both in one pass over the ids: which ids are among them, and codes.
class BucketCodes {
 public:
  static constexpr int kBatch = 64, kMost = 24;

  // The same bucket may be added more than once, and counts as often. Codes are `base` + how many
  // of the buckets are above the id (MoRF) or below it (LeRF).
  BucketCodes(bool morf, uint8_t base) : morf_(morf), base_(base) {}

  // False if there are too many, in all or among neighbours.
  bool add(int bucket) {
    const int row = bucket >> 4;
    if (count_ == kMost || in_row_[row] == kLevels) return false;
    const int level = in_row_[row]++;
    levels_ = std::max(levels_, level + 1);
    buckets_[count_++] = static_cast<uint8_t>(bucket);
    ends_[level][row] = static_cast<uint8_t>((bucket & 15) + 1);
    return true;
  }

  // For whole batches of ids: their codes, and which of them are in one of the buckets, as bits.
  void find(const uint8_t* ids, int64_t batches, uint64_t* found, uint8_t* codes) const {
#ifdef __AVX2__
    const auto run = morf_          ? levels_ <= 2 ? find_rows<true, 2> : find_rows<true, kLevels>
                     : levels_ <= 2 ? find_rows<false, 2>
                                    : find_rows<false, kLevels>;
    run(*this, ids, batches, found, codes);
#else
    uint8_t here[256] = {}, code_of[256], code = base_;
    for (int j = 0; j < count_; ++j) ++here[buckets_[j]];
    for (int k = 0; k < 256; ++k) {
      const int id = morf_ ? 255 - k : k;
      code_of[id] = code;
      code = static_cast<uint8_t>(code + here[id]);
    }
    for (int64_t b = 0; b < batches; ++b, ids += kBatch, codes += kBatch) {
      found[b] = 0;
      for (int i = 0; i < kBatch; ++i) {
        found[b] |= static_cast<uint64_t>(here[ids[i]] > 0) << i;
        codes[i] = code_of[ids[i]];
      }
    }
#endif
  }

  uint8_t code(uint8_t id) const {
    uint8_t code = base_;
    for (int j = 0; j < count_; ++j) code += morf_ ? buckets_[j] > id : buckets_[j] < id;
    return code;
  }
  bool has(uint8_t id) const {
    bool found = false;
    for (int j = 0; j < count_; ++j) found |= buckets_[j] == id;
    return found;
  }

 private:
  static constexpr int kLevels = 4;

#ifdef __AVX2__
  // Sixteen buckets are a row. Bytes are looked up in tables of sixteen, so the high half of an id
  // gives the code of its row, and what to compare the low half with.
  template <bool morf, int kUsed>
  __attribute__((noinline)) static void find_rows(const BucketCodes& set, const uint8_t* ids,
                                                  int64_t batches, uint64_t* found,
                                                  uint8_t* codes) {
    const auto twice = [](const void* table) __attribute__((always_inline)) {
      return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(table)));
    };
    const __m256i half = _mm256_set1_epi8(15);
    alignas(16) uint8_t row_codes[16];
    uint8_t code = set.base_;
    for (int k = 0; k < 16; ++k) {
      const int row = morf ? 15 - k : k;
      row_codes[row] = code;
      code = static_cast<uint8_t>(code + set.in_row_[row]);
    }
    const __m256i rows = twice(row_codes);
    // Where there is no bucket: a number that no low half is equal to or beyond.
    const __m256i none = _mm256_set1_epi8(morf ? -1 : 16);
    __m256i wanted[kUsed];
    for (int level = 0; level < kUsed; ++level) {
      const __m256i ends = twice(set.ends_[level]);
      wanted[level] = _mm256_blendv_epi8(_mm256_sub_epi8(ends, _mm256_set1_epi8(1)), none,
                                         _mm256_cmpeq_epi8(ends, _mm256_setzero_si256()));
    }
    const auto find32 = [&](const uint8_t* from, uint8_t* to) __attribute__((always_inline)) {
      const __m256i id = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      const __m256i low = _mm256_and_si256(id, half),
                    high = _mm256_and_si256(_mm256_srli_epi16(id, 4), half);
      __m256i stays = _mm256_shuffle_epi8(rows, high), equal = _mm256_setzero_si256();
      for (int level = 0; level < kUsed; ++level) {
        const __m256i bucket = _mm256_shuffle_epi8(wanted[level], high);
        const __m256i beyond =
            morf ? _mm256_cmpgt_epi8(bucket, low) : _mm256_cmpgt_epi8(low, bucket);
        stays = _mm256_sub_epi8(stays, beyond);
        equal = _mm256_or_si256(equal, _mm256_cmpeq_epi8(low, bucket));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), stays);
      return static_cast<uint32_t>(_mm256_movemask_epi8(equal));
    };
    for (int64_t b = 0; b < batches; ++b, ids += kBatch, codes += kBatch) {
      const uint32_t first = find32(ids, codes);
      found[b] = first | static_cast<uint64_t>(find32(ids + 32, codes + 32)) << 32;
    }
  }
#endif

  bool morf_;
  uint8_t base_;
  int count_ = 0, levels_ = 0;
  uint8_t buckets_[kMost];
  uint8_t in_row_[16] = {};         // how many buckets of a row there are
  uint8_t ends_[kLevels][16] = {};  // and one more than their low halves; 0 if there is none
};

}  // namespace rf
