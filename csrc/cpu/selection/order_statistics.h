// Order statistics of one row without sorting it. Up to three ranks are narrowed down to; for more,
// one pass spreads the values over 256 buckets and counts them, and one collects the buckets that
// hold wanted ranks; those few values are searched.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cpu/selection/row_writers.h"
#include "cpu/selection/select_values.h"
#include "cpu/selection/value_buckets.h"
#include "cpu/support/arena.h"
#include "cpu/support/simd.h"

namespace rf {

// Written with vector types: GCC makes a poor reduction of the loop. Also brings the row into the
// cache, at the speed of memory.
template <typename V>
bool has_nan(const V* x, int64_t n) {
  using Values = vector_t<V>;
  constexpr int kLanes = Vector<V>::kLanes;
  auto nan = Values{} != Values{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const Values a = load_as<Values>(x + i), b = load_as<Values>(x + i + kLanes);
    nan |= (a != a) | (b != b);
  }
  bool any = false;
  for (int lane = 0; lane < kLanes; ++lane) any |= nan[lane] != 0;
  for (; i < n; ++i) any |= x[i] != x[i];
  return any;
}

// Where codes go: `base` and how many of the selected values are above (MoRF) or below (LeRF).
struct Coding {
  uint8_t* codes;
  bool morf;
  uint8_t base;
};

// Selects several ranks of a row.
template <typename V>
class RowSelector {
 public:
  RowSelector(Arena& arena, int64_t n, int64_t max_ranks) {
    histogram_ = arena.take<uint32_t>(BucketMap<V>::kCopies * kBuckets);
    ids_ = arena.take<uint8_t>(n);
    positions_ = arena.take<uint32_t>(n);
    for (V*& buffer : buffers_) buffer = arena.take<V>(n + kCompressSlack);
    wanted_ = arena.take<Wanted>(max_ranks);
  }

  // out[r] for the ascending ranks[r] of x[0..n). False if there is a NaN, and then nothing else.
  // Finding it here saves a pass: the first one waits for memory anyway.
  //
  // With `coding`, which is for the edges that count_edges will be called with, the codes of all
  // but the collected values may be written on the way.
  bool select(const V* x, int64_t n, const int64_t* ranks, int count, OrderStatistic<V>* out,
              const Coding* coding = nullptr) {
    wanted_count_ = 0;
    complete_ = coded_ = false;
    if (n <= kSample) x = static_cast<const V*>(std::memcpy(buffers_[2], x, n * sizeof(V)));
    if (groups_of(ranks, count) <= 3) {
      if (has_nan(x, n)) return false;
      select_each(x, n, ranks, count, out);
      return true;
    }
    BucketMap<V>::clear(histogram_);
    V sample[kSample];
    take_sample(x, n, kSample, sample);
    const FewValues<V> few(sample, kSample);
    int first = 0, last = count;
    if (few.tied_pairs() >= 6) resolve_common_value(x, n, few, ranks, &first, &last, out);
    if (first == last) return !has_nan(x, n);
    const auto sampled = [&](int64_t rank, int away) {
      const int64_t s = rank * kSample / n + away;
      return few.value_at(std::min<int64_t>(std::max<int64_t>(s, 0), kSample - 1));
    };
    const int64_t lowest = ranks[first], highest = ranks[last - 1],
                  quarter = (highest - lowest) / 4;
    map_ = BucketMap<V>(sampled(lowest, -3), sampled(lowest + quarter, 0),
                        sampled(highest - quarter, 0), sampled(highest, 3));
    if (map_.find_and_count(x, n, ids_, histogram_)) return false;
    find_buckets(ranks + first, last - first, n / 8);
    complete_ = first == 0 && last == count;
    collect(x, n, complete_ ? coding : nullptr);
    search_collected(x, n, ranks + first, out + first);
    return true;
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
    if (coded_) {
      count_collected<morf>(edges, count, static_cast<uint8_t>(nothing), codes);
      return true;
    }
    if (wanted_count_ == 0 || !complete_ || count > kFewBuckets) return false;
    map_.find(edges, count, buckets);
    for (int j = 0; j < count; ++j) {
      if (!collected_buckets_.has(buckets[j]) && histogram_[buckets[j]] > 0) return false;
    }
    count_bucket_edges<morf>(ids_, n, buckets, count, static_cast<uint8_t>(nothing), codes);
    count_collected<morf>(edges, count, static_cast<uint8_t>(nothing), codes);
    return true;
  }

 private:
  static constexpr int kBuckets = BucketMap<V>::kBuckets;
  static constexpr int kSample = FewValues<V>::kCapacity;

  // Exact codes for the collected values.
  template <bool morf>
  void count_collected(const V* edges, int count, uint8_t base, uint8_t* codes) const {
    uint8_t* const exact = reinterpret_cast<uint8_t*>(buffers_[1]);
    // Whole groups of 32: what lies beyond the collected values is ignored.
    count_bounds<morf>(buffers_[0], (collected_ + 31) & ~int64_t{31}, edges, count, exact);
    const uint32_t* const positions = positions_;
    const int64_t collected = collected_;
    int64_t k = 0;
    for (; k + 8 <= collected; k += 8) {
      const uint64_t eight = load_as<uint64_t>(exact + k);
      uint32_t to[8];
      for (int j = 0; j < 8; ++j) to[j] = positions[k + j];
      for (int j = 0; j < 8; ++j) codes[to[j]] = static_cast<uint8_t>((eight >> 8 * j) + base);
    }
    for (; k < collected; ++k) codes[positions[k]] = static_cast<uint8_t>(exact[k] + base);
  }

  // Where the bucket that holds one wanted rank begins:
  // in the row by rank, and in what is collected.
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

  // Buckets are in order, so a rank of the row is a rank in its bucket.
  void search_collected(const V* x, int64_t n, const int64_t* ranks, OrderStatistic<V>* out) {
    for (int r = 0; r < wanted_count_; ++r) {
      const Wanted& b = wanted_[r];
      const V* const values = buffers_[0] + b.start;
      const int64_t rank = ranks[r] - b.before;
      if (r > 0 && ranks[r] < out[r - 1].smaller + out[r - 1].equal) {
        out[r] = out[r - 1];  // one more rank within the same ties
      } else if (b.size > crowd_) {
        out[r] = select_rank(x, n, ranks[r], buffers_[1], buffers_[2]);
      } else if (b.size <= 8) {
        FewValues<V, 8>(values, b.size).find(rank, b.before, out + r);
      } else if (b.size <= 16) {
        FewValues<V, 16>(values, b.size).find(rank, b.before, out + r);
      } else {
        out[r] = select_rank(values, b.size, rank, buffers_[1], buffers_[2]);
        out[r].smaller += b.before;
      }
    }
  }

  // Maps with one very common value (ReLU: zeros) have most ranks within its ties, where counting
  // smaller and equal values is all it takes. Resolves those ranks if they are the first or the
  // last; the others are [first, last).
  void resolve_common_value(const V* x, int64_t n, const FewValues<V>& few, const int64_t* ranks,
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

  // Without a branch on the counts, which would be mispredicted for every rank: how many blocks of
  // buckets, and then how many buckets of the next block, end at or before it.
  void find_buckets(const int64_t* ranks, int count, int64_t crowd) {
    const uint32_t* const h = histogram_;
    uint32_t ends_of_blocks[kBlocks + 1];
    ends_of_blocks[0] = 0;
    Counts end{};
    for (int k = 0; k < kBlocks; k += kBlock) {
      const Counts ends = running_sums(block_sums(h + k * kBlock)) + end;
      end = Counts{} + ends[kBlock - 1];
      store_as(ends_of_blocks + 1 + k, ends);
    }
    int64_t start = 0;
    int previous = -1;
    for (int r = 0; r < count; ++r) {
      const Counts rank = Counts{} + static_cast<uint32_t>(ranks[r]);
      int block = 0;
      for (int k = 0; k < kBlocks; k += kBlock)
        block += count_true(load_as<Counts>(ends_of_blocks + 1 + k) <= rank);
      const Counts ends = running_sums(load_as<Counts>(h + block * kBlock)) + ends_of_blocks[block];
      uint32_t ends_in_block[kBlock];
      store_as(ends_in_block, ends);
      const int below = count_true(ends <= rank), bucket = block * kBlock + below;
      if (bucket != previous && previous >= 0 && h[previous] <= crowd) start += h[previous];
      wanted_[r] = {ends_in_block[below] - h[bucket], h[bucket], start, bucket};
      previous = bucket;
    }
    wanted_count_ = count;
    crowd_ = crowd;
  }

  static constexpr int kBlock = 8, kBlocks = kBuckets / kBlock;
  using Counts = vector_t<uint32_t, 4 * kBlock>;

  // Lane k: the sum of lanes 0 to k.
  static Counts running_sums(Counts counts) {
    counts += shifted<kBlock - 1>(Counts{}, counts);
    counts += shifted<kBlock - 2>(Counts{}, counts);
    return counts + shifted<kBlock - 4>(Counts{}, counts);
  }

  // Lane k: the sum of h[8 * k] to h[8 * k + 7].
  static Counts block_sums(const uint32_t* h) {
    // Sums of neighbours, within the halves of vectors, as shuffles work best.
    const auto pairs = [](Counts a, Counts b) __attribute__((always_inline)) {
      return shuffle<0, 2, 8, 10, 4, 6, 12, 14>(a, b) + shuffle<1, 3, 9, 11, 5, 7, 13, 15>(a, b);
    };
    const auto two = [&](int k) __attribute__((always_inline)) {
      return pairs(load_as<Counts>(h + k * kBlock), load_as<Counts>(h + (k + 1) * kBlock));
    };
    const Counts low = pairs(two(0), two(2)), high = pairs(two(4), two(6));
    return shuffle<0, 1, 2, 3, 8, 9, 10, 11>(low, high) +
           shuffle<4, 5, 6, 7, 12, 13, 14, 15>(low, high);
  }

  // Copies the wanted buckets to buffers_[0], each to its own stretch, and their positions.
  // Few values are wanted, so only these are visited.
  void collect(const V* x, int64_t n, const Coding* coding) {
    uint32_t next[kBuckets];  // where the next value of a wanted bucket goes
    BucketCodes bucket_codes(coding && coding->morf, coding ? coding->base : 0);
    coded_ = coding != nullptr;
    bool any = false;
    for (int r = 0; r < wanted_count_; ++r) {
      const Wanted& wanted = wanted_[r];
      const bool crowded = wanted.size > crowd_;
      coded_ = coded_ && !crowded && bucket_codes.add(wanted.bucket);
      next[wanted.bucket] = static_cast<uint32_t>(wanted.start);
      any |= !crowded;
    }
    BucketSet set;
    for (int r = 0; !coded_ && r < wanted_count_; ++r) {
      if (wanted_[r].size <= crowd_) set.add(wanted_[r].bucket);
    }
    collected_buckets_ = set;
    uint32_t* const hits = reinterpret_cast<uint32_t*>(buffers_[1]);
    int64_t begin = any ? 0 : n, count = 0;
    while (begin + BucketSet::kBatch <= n) {
      constexpr int64_t kMany = 64;
      uint64_t found[kMany];
      const int64_t batches = std::min(kMany, (n - begin) / BucketSet::kBatch);
      if (coded_) {
        bucket_codes.find(ids_ + begin, batches, found, coding->codes + begin);
      } else {
        for (int64_t b = 0; b < batches; ++b)
          found[b] = set.find(ids_ + begin + b * BucketSet::kBatch);
      }
      for (int64_t b = 0; b < batches; ++b, begin += BucketSet::kBatch) {
        uint64_t left = found[b];
        const int here = __builtin_popcountll(left);
        const auto take = [&](int k) __attribute__((always_inline)) {
          hits[count + k] = static_cast<uint32_t>(begin + __builtin_ctzll(left | kLastHit));
          left &= left - 1;
        };
        // Always six, without a branch; more are rare.
        take(0), take(1), take(2), take(3), take(4), take(5);
        for (int k = 6; k < here; ++k) take(k);
        count += here;
      }
    }
    for (; begin < n; ++begin) {
      const uint8_t id = ids_[begin];
      hits[count] = static_cast<uint32_t>(begin);
      count += coded_ ? bucket_codes.has(id) : set.has(id);
      if (coded_) coding->codes[begin] = bucket_codes.code(id);
    }
    // Loads before stores, a group at a time: a load is not begun while it might depend on a store
    // whose address is not known yet.
    constexpr int kGroup = 4;
    V* const values = buffers_[0];
    uint32_t* const positions = positions_;
    const uint8_t* const ids = ids_;
    const auto place = [&](const uint32_t* group, int size) __attribute__((always_inline)) {
      uint32_t i[kGroup], bucket[kGroup];
      V value[kGroup];
      for (int j = 0; j < size; ++j) {
        i[j] = group[j];
        bucket[j] = ids[i[j]];
        value[j] = x[i[j]];
      }
      uint32_t to[kGroup];
      for (int j = 0; j < size; ++j) to[j] = next[bucket[j]]++;
      for (int j = 0; j < size; ++j) {
        values[to[j]] = value[j];
        positions[to[j]] = i[j];
      }
    };
    int64_t k = 0;
    for (; k + kGroup <= count; k += kGroup) place(hits + k, kGroup);
    for (; k < count; ++k) place(hits + k, 1);
    collected_ = count;
  }

  static constexpr uint64_t kLastHit = uint64_t{1} << 63;

  uint32_t* histogram_;  // [BucketMap::kCopies, kBuckets]
  uint8_t* ids_;         // [n] the bucket of each value
  uint32_t* positions_;  // [n] where the collected values are in the row
  V* buffers_[3];        // [n + kCompressSlack]; the first holds the collected values
  Wanted* wanted_;
  BucketSet collected_buckets_;
  int wanted_count_ = 0;
  int64_t collected_ = 0;  // how many values are
  int64_t crowd_ = 0;      // buckets with more values than this are not collected
  bool coded_ = false;     // codes are written, but for the collected values
  bool complete_ = false;  // all ranks of the last selection are in buckets
  BucketMap<V> map_{0, 0, 0, 0};
};

}  // namespace rf
