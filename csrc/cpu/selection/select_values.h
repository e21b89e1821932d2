// Order statistics by narrowing: a sample says between which two values the wanted rank must lie,
// one pass keeps the values between them, and so on until few are left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cpu/selection/compress.h"
#include "cpu/support/simd.h"

namespace rf {

// The value at one rank, how many values of the row are smaller, and how many are equal to it.
template <typename V>
struct OrderStatistic {
  V value;
  int64_t smaller, equal;
};

template <typename V>
constexpr V kLowest = std::is_floating_point_v<V> ? -std::numeric_limits<V>::infinity()
                                                  : std::numeric_limits<V>::lowest();
template <typename V>
constexpr V kHighest = std::is_floating_point_v<V> ? std::numeric_limits<V>::infinity()
                                                   : std::numeric_limits<V>::max();

// Up to kFew values, each with the number of smaller ones: all are compared with all, in vectors.
template <typename V, int kFew = 32>
class FewValues {
 public:
  static constexpr int kCapacity = kFew;

  // x has kFew values that may be read, of which n count.
  FewValues(const V* x, int64_t n) : padding_(kFew - static_cast<int>(n)) {
    for (int k = 0; k < kVectors; ++k) {
      const Values v = load_as<Values>(x + k * kLanes);
      values_[k] = lane_numbers() + k * kLanes < static_cast<Count>(n) ? v : Values{} + kHighest<V>;
      smaller_[k] = Counts{};
    }
    V padded[kFew];
    std::memcpy(padded, values_, sizeof(values_));
    constexpr int kGroup = std::min(kVectors, 4);  // as many vectors as registers hold with counts
    for (int first = 0; first < kVectors; first += kGroup) {
      for (int i = 0; i < kFew; ++i) {
        for (int k = first; k < first + kGroup; ++k) smaller_[k] -= padded[i] < values_[k];
      }
    }
  }

  // The largest value with at most `rank` smaller ones. The padding does no harm: it is chosen only
  // where the true value equals it.
  V value_at(int64_t rank) const {
    const Counts limit = Counts{} + static_cast<Count>(rank);
    const Values lowest = Values{} + kLowest<V>;
    Values best = smaller_[0] <= limit ? values_[0] : lowest;
    for (int k = 1; k < kVectors; ++k) {
      const Values v = smaller_[k] <= limit ? values_[k] : lowest;
      best = max_of(v, best);
    }
    return largest_lane(best);
  }

  // How many pairs are equal, if all kFew values are there.
  int tied_pairs() const {
    Counts sums{};
    for (int k = 0; k < kVectors; ++k) sums += smaller_[k];
    int pairs = kFew * (kFew - 1) / 2;
    for (int lane = 0; lane < kLanes; ++lane) pairs -= static_cast<int>(sums[lane]);
    return pairs;
  }

  OrderStatistic<V> at(int64_t rank) const {
    OrderStatistic<V> s;
    find(rank, 0, &s);
    return s;
  }

  // The same if `before` more values are smaller. Field by field: copying the whole would load it
  // before these stores are done.
  __attribute__((always_inline)) void find(int64_t rank, int64_t before,
                                           OrderStatistic<V>* out) const {
    const V value = value_at(rank);
    int smaller = 0, equal = value == kHighest<V> ? -padding_ : 0;
    for (int k = 0; k < kVectors; ++k) {
      smaller += count_true(values_[k] < value);
      equal += count_true(values_[k] == value);
    }
    out->value = value;
    out->smaller = before + smaller;
    out->equal = equal;
  }

 private:
  static constexpr int kLanes = Vector<V>::kLanes, kVectors = kFew / kLanes;
  using Values = vector_t<V>;
  typedef decltype(Values{} < Values{}) Counts;
  using Count = std::conditional_t<sizeof(V) == 8, int64_t, int32_t>;

  static Counts lane_numbers() {
    Counts numbers{};
    for (int lane = 0; lane < kLanes; ++lane) numbers[lane] = lane;
    return numbers;
  }
  __attribute__((always_inline)) static V largest_lane(Values v) {
    if constexpr (kLanes == 8) {
      v = max_of(v, shuffle<4, 5, 6, 7, 0, 1, 2, 3>(v, v));
      v = max_of(v, shuffle<2, 3, 0, 1, 6, 7, 4, 5>(v, v));
    } else if constexpr (kLanes == 4) {
      v = max_of(v, shuffle<2, 3, 0, 1>(v, v));
    }
    return max_of<V>(v[0], v[1]);
  }

  Values values_[kVectors];
  Counts smaller_[kVectors];
  int padding_;
};

// x[0..count) spread over x[0..n) by the golden ratio: even, and in step with no image width.
template <typename V>
void take_sample(const V* x, int64_t n, int count, V* sample) {
  for (int s = 0; s < count; ++s) {
    const uint64_t fraction = static_cast<uint32_t>(s) * 0x9E3779B1u + 0x4F1BBCDDu;
    sample[s] = x[((fraction & 0xffffffffu) * static_cast<uint64_t>(n)) >> 32];
  }
}

// The next value that V can represent, up and down.
template <typename V>
V step_up(V v) {
  if constexpr (std::is_floating_point_v<V>) return std::nextafter(v, kHighest<V>);
  return v + 1;
}
template <typename V>
V step_down(V v) {
  if constexpr (std::is_floating_point_v<V>) return std::nextafter(v, kLowest<V>);
  return v - 1;
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

// The smallest value above s.value, of which x[0..n) must have one.
template <typename V>
OrderStatistic<V> next_above(const V* x, int64_t n, const OrderStatistic<V>& s) {
  V next = kHighest<V>;
  for (int64_t i = 0; i < n; ++i) next = x[i] > s.value && x[i] < next ? x[i] : next;
  int64_t equal = 0;
  for (int64_t i = 0; i < n; ++i) equal += x[i] == next;
  return {next, s.smaller + s.equal, equal};
}

// All values of interest are in [low, high].
template <typename V>
struct Interval {
  V low, high;
};

template <typename V>
bool is_finite(const Interval<V>& range) {
  if constexpr (std::is_floating_point_v<V>) return std::isfinite(range.high - range.low);
  return true;
}

template <typename V>
OrderStatistic<V> select_rank(const V* x, int64_t n, int64_t rank, V* buffer, V* other_buffer,
                              bool uniform = false, OrderStatistic<V>* next = nullptr);

// Between which two ranks of `size` values of a sample the value at `rank` of n values lies: a
// binomial deviation of ranks, times how sure we want to be. Missing costs another pass, a wide
// interval more values to look at in the next one.
struct SampleRanks {
  int64_t low, high;

  SampleRanks(int64_t rank, int64_t n, int size, double deviations) {
    const double p = (static_cast<double>(rank) + 0.5) / static_cast<double>(n);
    const double middle = p * size - 0.5;
    const double margin = deviations * std::sqrt(p * (1.0 - p) * size) + 0.5;
    low = std::max<int64_t>(0, static_cast<int64_t>(middle - margin));
    high = std::min<int64_t>(size - 1, static_cast<int64_t>(middle + margin + 1.0));
  }
};

// A common value (zeros of ReLU) at an end of the interval would be most of what is kept. If the
// sample has the wanted rank beyond it, the interval can do without.
template <typename V>
__attribute__((noinline)) void leave_ties_out(const FewValues<V>& few, const SampleRanks& ranks,
                                              int64_t wanted, Interval<V>* in) {
  constexpr int kCommon = 4;
  const OrderStatistic<V> low = few.at(ranks.low), high = few.at(ranks.high);
  if (low.equal >= kCommon && wanted >= low.smaller + low.equal) in->low = step_up(in->low);
  if (high.equal >= kCommon && wanted < high.smaller) in->high = step_down(in->high);
}

// Where the value at `rank` of x[0..n) probably is, by a sample; with `single`, one value near it.
template <typename V>
Interval<V> guess_by_sample(const V* x, int64_t n, int64_t rank, bool single) {
  constexpr int kFew = FewValues<V>::kCapacity, kMany = 1024;
  if (n <= 8 * kMany || single) {
    V sample[kFew];
    take_sample(x, n, kFew, sample);
    const FewValues<V> few(sample, kFew);
    if (single) {
      const V value = few.value_at(rank * kFew / n);
      return {value, value};
    }
    const SampleRanks ranks(rank, n, kFew, 1.5);
    Interval<V> in{few.value_at(ranks.low), few.value_at(ranks.high)};
    if (in.low < in.high && few.tied_pairs() >= 6) leave_ties_out(few, ranks, rank * kFew / n, &in);
    return in;
  }
  V sample[kMany], buffers[2][kMany + kCompressSlack];
  take_sample(x, n, kMany, sample);
  const SampleRanks ranks(rank, n, kMany, 3.0);
  return {select_rank(sample, kMany, ranks.low, buffers[0], buffers[1]).value,
          select_rank(sample, kMany, ranks.high, buffers[0], buffers[1]).value};
}

// The same for values that are spread about evenly over an interval, as those that a first guess
// left over are.
template <typename V>
Interval<V> guess_by_value(const Interval<V>& range, int64_t n, int64_t rank) {
  const double size = static_cast<double>(n), low = static_cast<double>(range.low),
               span = static_cast<double>(range.high) - low;
  const double p = (static_cast<double>(rank) + 0.5) / size;
  const double margin = 1.5 * std::sqrt(p * (1.0 - p) / size) + 2.0 / size + 0.03;
  return {p > margin ? static_cast<V>(low + span * (p - margin)) : range.low,
          p + margin < 1.0 ? static_cast<V>(low + span * (p + margin)) : range.high};
}

// The value at `rank` of x[0..n), and with `next` also that at rank + 1. The buffers have room for
// n + kCompressSlack values; so has x, if n is at most FewValues' capacity. `uniform`: x is spread
// evenly over all of V.
template <typename V>
OrderStatistic<V> select_rank(const V* x, int64_t n, int64_t rank, V* buffer, V* other_buffer,
                              bool uniform, OrderStatistic<V>* next) {
  const V* const row = x;
  const int64_t row_size = n, row_rank = rank;
  int64_t skipped = 0;  // values known to be smaller than all of x
  Interval<V> range{kLowest<V>, kHighest<V>};
  enum { kSample, kSingle, kValue } guess = uniform ? kValue : kSample;
  OrderStatistic<V> found{};
  for (;;) {
    if (n <= FewValues<V>::kCapacity) {
      const auto search = [&](const auto& few) {
        found = few.at(rank);
        if (next && rank + 1 < n) *next = few.at(rank + 1);
      };
      n <= 8 ? search(FewValues<V, 8>(x, n)) : search(FewValues<V>(x, n));
      found.smaller += skipped;
      if (!next || rank + 1 >= n) break;
      next->smaller += skipped;
      return found;
    }
    Interval<V> in = guess == kValue ? guess_by_value(range, n, rank)
                                     : guess_by_sample(x, n, rank, guess == kSingle);
    int64_t below, kept = keep_between(x, n, in.low, in.high, buffer, &below);
    if (rank < below || rank >= below + kept) {  // a wrong guess: take that side whole
      in = rank < below ? Interval<V>{range.low, step_down(in.low)}
                        : Interval<V>{step_up(in.high), range.high};
      kept = keep_between(x, n, in.low, in.high, buffer, &below);
    }
    range = in;
    if (range.low == range.high) {
      found = {range.low, skipped + below, kept};
      break;
    }
    // Ties crowd in a small part of an interval, and may be most of a sample.
    const bool slow = kept > n - n / 4;
    guess = slow ? (guess == kValue ? kSample : kSingle) : is_finite(range) ? kValue : kSample;
    skipped += below;
    rank -= below;
    n = kept;
    x = buffer;
    std::swap(buffer, other_buffer);
  }
  if (!next) return found;
  // Rare: the interval ends just here.
  const bool tied = row_rank + 1 < found.smaller + found.equal;
  *next = tied ? found : next_above(row, row_size, found);
  return found;
}

}  // namespace rf
