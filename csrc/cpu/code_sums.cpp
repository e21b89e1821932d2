// Sums of the values of each code, in integers (common/code_sums.h), bound by one addition in
// memory per value. Floats that are not much smaller than the largest of the row are multiples of
// one unit, and doubles add up exactly as integers do while sums stay below 2^53 units: these take
// the short way. The others, and all doubles, add the high and the low word at once, as a vector of
// two integers. The largest takes a pass of its own. Rows often agree in its exponent, so floats
// take that of the row before for granted, and are added again where that was wrong.
#include "common/code_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "common/dtype.h"
#include "common/status.h"
#include "cpu/support/parallel.h"
#include "cpu/support/simd.h"

namespace {

constexpr int kCodes = 256, kGroup = 8, kLanes = 4;
constexpr int64_t kChunk = 512;  // values converted at a time, if not stored as they are computed

using Doubles = rf::vector_t<double, 8 * kLanes>;
using Integers = rf::vector_t<int64_t, 8 * kLanes>;
using Pair = rf::vector_t<uint64_t, 16>;  // high and low word

// Tables take turns: neighbours often have the same code, and an addition waits for the one before
// to the same address. Sizes beyond a power of two keep equal entries of two tables from being a
// multiple of 4 KB apart (4K aliasing). Unsigned, since entries that are left out are never cleared
// and may wrap.
template <typename Entry, int kTables>
struct Tables {
  Entry entries[kTables][kCodes + 8];

  void clear(int64_t count) {
    for (auto& table : entries) std::fill(table, table + count, Entry{});
  }
  Entry total(int64_t code) const {
    Entry sum{};
    for (const auto& table : entries) sum += table[code];
    return sum;
  }
  __attribute__((always_inline)) void add(int turn, uint64_t code, Entry value) {
    entries[turn % kTables][code] += value;
  }
};
using UnitTables = Tables<double, kGroup>;
using PairTables = Tables<Pair, kGroup / 2>;

// The largest magnitude of x, or of `so_far`, as a bit pattern: these order as magnitudes do, and
// NaN is above infinity. Written with vector types: GCC makes a poor reduction of the loop.
template <typename V>
using bits_t = std::conditional_t<sizeof(V) == 8, int64_t, int32_t>;
template <typename V>
constexpr bits_t<V> kMagnitude = std::numeric_limits<bits_t<V>>::max();  // all but the sign

template <typename V>
__attribute__((noinline)) bits_t<V> largest_bits(const V* x, int64_t size, bits_t<V> so_far) {
  using Vector = rf::vector_t<bits_t<V>>;
  constexpr int kWidth = rf::Vector<bits_t<V>>::kLanes;
  Vector most[2] = {Vector{}, Vector{}};
  int64_t i = 0;
  for (; i + 2 * kWidth <= size; i += 2 * kWidth) {
    for (int k = 0; k < 2; ++k) {
      most[k] = rf::max_of(rf::load_as<Vector>(x + i + k * kWidth) & kMagnitude<V>, most[k]);
    }
  }
  for (int lane = 0; lane < kWidth; ++lane) {
    so_far = std::max<bits_t<V>>({so_far, most[0][lane], most[1][lane]});
  }
  for (; i < size; ++i) so_far = std::max(so_far, rf::load_as<bits_t<V>>(x + i) & kMagnitude<V>);
  return so_far;
}

// round(v) as an integer, for results up to 2^51: adding a power of two leaves them in the low bits
// of the sum, rounded half to even.
constexpr double kRounder = 1.5 * (int64_t{1} << 52);
__attribute__((always_inline)) inline Integers rounded(Doubles v) {
  const Doubles rounder = Doubles{} + kRounder;
  return reinterpret_cast<Integers>(v + rounder) - reinterpret_cast<Integers>(rounder);
}

template <typename V>
__attribute__((always_inline)) inline Doubles load_doubles(const V* x) {
  return rf::to_doubles(rf::load_as<rf::vector_t<V, kLanes * sizeof(V)>>(x));
}

// Calls body(values, codes as bytes of a word) with every kGroup values, the last ones padded with
// zeros, and fetches what lies `ahead`: the next row, mostly.
template <typename V, typename Body>
__attribute__((always_inline)) inline void for_groups(const V* x, const uint8_t* codes,
                                                      int64_t size, int64_t ahead,
                                                      const Body& body) {
  int64_t i = 0;
  for (; i + 2 * kGroup <= size; i += 2 * kGroup) {
    __builtin_prefetch(x + i + ahead, 0, 2);
    __builtin_prefetch(codes + i + ahead, 0, 2);
    body(x + i, rf::load_as<uint64_t>(codes + i));
    body(x + i + kGroup, rf::load_as<uint64_t>(codes + i + kGroup));
  }
  for (; i + kGroup <= size; i += kGroup) body(x + i, rf::load_as<uint64_t>(codes + i));
  if (i == size) return;
  V rest[kGroup] = {};
  uint64_t tags = 0;
  std::memcpy(rest, x + i, (size - i) * sizeof(V));
  std::memcpy(&tags, codes + i, size - i);
  body(rest, tags);
}

// kWide: of short rows, whose words have more than 51 bits.
template <bool kWide, typename V>
__attribute__((always_inline)) inline void add_pairs(const V* group, uint64_t tags,
                                                     const rf::FixedPoint& point,
                                                     PairTables& tables) {
  alignas(32) Pair pairs[kGroup];
  int order[kLanes] = {0, 1, 2, 3};
  for (int k = 0; kWide && k < kGroup; ++k) {
    int64_t high, low;
    point.split(static_cast<double>(group[k]), &high, &low);
    pairs[k] = Pair{static_cast<uint64_t>(high), static_cast<uint64_t>(low)};
  }
  for (int k = 0; !kWide && k < kGroup; k += kLanes) {
    const Doubles scaled = load_doubles(group + k) * point.up_high * point.up_more,
                  whole = scaled + kRounder - kRounder;
    const Integers high = rounded(scaled), low = rounded((scaled - whole) * point.up_low);
    // Within the halves of vectors, as shuffles work best.
    rf::store_as(pairs + k, rf::shuffle<0, 4, 2, 6>(high, low));
    rf::store_as(pairs + k + 2, rf::shuffle<1, 5, 3, 7>(high, low));
    order[1] = 2, order[2] = 1;
  }
  rf::in_memory(pairs);
  for (int k = 0; k < kGroup; ++k) {
    tables.add(k, tags & 0xff, pairs[k / kLanes * kLanes + order[k % kLanes]]);
    tags >>= 8;
  }
}

template <bool kWide, typename V>
__attribute__((noinline)) void add_all_pairs(const V* x, const uint8_t* codes, int64_t size,
                                             int64_t ahead, const rf::FixedPoint& from,
                                             PairTables& tables) {
  const rf::FixedPoint point = from;  // stores might change it, for all that is known
  for_groups(x, codes, size, ahead,
             [&](const V* group, uint64_t tags) { add_pairs<kWide>(group, tags, point, tables); });
}

// Which magnitudes of floats take the short way, as bit patterns: zero and [least, end).
struct ShortWay {
  int32_t least = 0, end = 0;
};

// Groups with smaller values go to the pairs, unless there are larger ones, too. Says whether there
// were any, and updates the largest magnitude.
template <bool kWide>
__attribute__((noinline)) bool add_units(const float* x, const uint8_t* codes, int64_t size,
                                         int64_t ahead, ShortWay way, const rf::FixedPoint& point,
                                         UnitTables& units, PairTables& pairs, int32_t* largest) {
  using Words = rf::vector_t<uint32_t, 4 * kGroup>;
  using Ints = rf::vector_t<int32_t, 4 * kGroup>;
  // Magnitudes moved so that 0 is the largest number, and all others are in order below it.
  constexpr uint32_t kMove = 0x7fffffffu;
  const int32_t limit = static_cast<int32_t>(kMove + static_cast<uint32_t>(way.least));
  Ints most = {};
  bool smaller = false;
  for_groups(x, codes, size, ahead,
             [&](const float* group, uint64_t tags) __attribute__((always_inline)) {
               const Words bits = rf::load_as<Words>(group) & kMove, moved = bits + kMove;
               most = rf::max_of(reinterpret_cast<Ints>(bits), most);
               if (__builtin_expect(rf::any_true(reinterpret_cast<Ints>(moved) < limit), false)) {
                 smaller = true;
                 if (rf::any_true(reinterpret_cast<Ints>(bits) >= way.end)) return;
                 uint8_t bytes[kGroup];
                 rf::store_as(bytes, tags);
                 return add_all_pairs<kWide>(group, bytes, kGroup, 0, point, pairs);
               }
               const Doubles first = load_doubles(group), second = load_doubles(group + kLanes);
               for (int k = 0; k < kGroup; k += 2) {  // two bytes of a register are at hand
                 const Doubles& half = k < kLanes ? first : second;
                 units.add(k, tags & 0xff, half[k % kLanes]);
                 units.add(k + 1, (tags >> 8) & 0xff, half[k % kLanes + 1]);
                 tags = rf::computed(tags >> 16);
               }
             });
  for (int lane = 0; lane < kGroup; ++lane) *largest = std::max<int32_t>(*largest, most[lane]);
  return smaller;
}

// The rows of one thread.
template <typename T>
class CodeSums {
 public:
  CodeSums(int64_t f, int64_t count)
      : f_(f), count_(count), row_bits_(rf::log2_above(f)), point_(0.0, f) {}

  void run(const T* row, const uint8_t* codes, double* out) {
    bits_t<V> bits = 0;
    const bool guess = kFloats && steady_;
    if (guess) {
      bits = add(row, codes);
      // Sums of units are exact whatever the exponent of the row, as long as it is not larger.
      if (bits < way_.end && !smaller_) return write_units(out);
    } else {
      for_chunks(row, [&](const V* x, int64_t, int64_t n) { bits = largest_bits(x, n, bits); });
    }
    const double largest = static_cast<double>(rf::load_as<V>(&bits));
    if (!std::isfinite(largest)) {
      std::fill(out, out + count_, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    if (largest == 0) {
      std::fill(out, out + count_, 0.0);
      return;
    }
    int above = 0;
    std::frexp(largest, &above);
    const bool same = above == above_;
    steady_ = same || above_ == kNone;
    if (!same) set_scale(largest, above);
    if (!guess || !same) add(row, codes);
    if (kFloats && !smaller_) return write_units(out);
    for (int64_t c = 0; c < count_; ++c) {
      const Pair sum = pairs_.total(c);
      const double units = kFloats ? units_.total(c) * point_.up_high * point_.up_more : 0;
      out[c] = point_.join(static_cast<int64_t>(units) + static_cast<int64_t>(sum[0]),
                           static_cast<int64_t>(sum[1]));
    }
  }

 private:
  using V = rf::compute_t<T>;
  static constexpr bool kFloats = sizeof(V) == 4;
  static constexpr int kNone = std::numeric_limits<int>::min();

  void set_scale(double largest, int above) {
    above_ = above;
    point_ = rf::FixedPoint(largest, f_);
    if constexpr (kFloats) {
      // A float in [2^(e-1), 2^e) is a multiple of 2^(e-24) and of 2^-149. The sum of f of them is
      // below 2^53 units if the unit is f * 2^above / 2^53.
      const int exponent = above + row_bits_ - 30;
      const float least = exponent > -126 ? std::ldexp(1.0f, exponent) : 0.0f;
      const float end = std::ldexp(1.0f, above);  // or infinity
      way_ = {rf::load_as<int32_t>(&least), rf::load_as<int32_t>(&end)};
    }
  }

  // Fills the tables with the sums of a row, and returns its largest magnitude if that was not
  // known before.
  bits_t<V> add(const T* row, const uint8_t* codes) {
    return row_bits_ < 11 ? add<true>(row, codes) : add<false>(row, codes);
  }
  template <bool kWide>
  bits_t<V> add(const T* row, const uint8_t* codes) {
    bits_t<V> bits = 0;
    if (smaller_) pairs_.clear(count_);
    if constexpr (kFloats) units_.clear(count_);
    smaller_ = !kFloats;
    for_chunks(row, [&](const V* x, int64_t begin, int64_t size) {
      if constexpr (kFloats) {
        smaller_ |=
            add_units<kWide>(x, codes + begin, size, ahead(), way_, point_, units_, pairs_, &bits);
      } else {
        add_all_pairs<kWide>(x, codes + begin, size, ahead(), point_, pairs_);
      }
    });
    return bits;
  }

  void write_units(double* out) const {
    for (int64_t c = 0; c < count_; ++c) out[c] = units_.total(c) + 0.0;  // no negative zero
  }

  // Where one pass does, a little further on. Otherwise the next row, if both stay in L2.
  int64_t ahead() const {
    if (kFloats && steady_) return 2048;
    return f_ * static_cast<int64_t>(sizeof(V)) <= 256 * 1024 ? f_ : 0;
  }

  // body(values, first, size): the whole row, or converted pieces of it.
  template <typename Body>
  void for_chunks(const T* row, const Body& body) {
    if constexpr (std::is_same_v<T, V>) {
      body(row, int64_t{0}, f_);
    } else {
      V values[kChunk];
      for (int64_t begin = 0; begin < f_; begin += kChunk) {
        const int64_t size = std::min(kChunk, f_ - begin);
        for (int64_t i = 0; i < size; ++i) values[i] = rf::load(row[begin + i]);
        body(static_cast<const V*>(values), begin, size);
      }
    }
  }

  int64_t f_, count_;
  int row_bits_;         // how many more a sum has than its terms
  int above_ = kNone;    // largest < 2^above, the least one
  bool steady_ = false;  // the last two rows had the same exponent
  bool smaller_ = true;  // the tables of pairs were used
  rf::FixedPoint point_;
  ShortWay way_;
  UnitTables units_;
  PairTables pairs_;
};

}  // namespace

extern "C" rf_status rf_code_sums(const void* in, const uint8_t* codes, double* out, rf_dtype dtype,
                                  int64_t n, int64_t f, int64_t count, rf_stream) {
  if (count < 1 || count > kCodes) {
    return rf::fail(RF_INVALID_ARGUMENT, "count must be 1 to %d, got %lld", kCodes,
                    static_cast<long long>(count));
  }
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(f, 1));
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<std::optional<CodeSums<T>>> of_threads(rf::plan_threads(n, grain));
    rf::parallel_for(n, grain, [&](int64_t begin, int64_t end, int thread) {
      std::optional<CodeSums<T>>& sums = of_threads[thread];
      if (!sums) sums.emplace(f, count);
      for (int64_t i = begin; i < end; ++i) {
        sums->run(static_cast<const T*>(in) + i * f, codes + i * f, out + i * count);
      }
    });
  });
  return known ? RF_OK : rf::fail_dtype("code_sums", dtype);
}
