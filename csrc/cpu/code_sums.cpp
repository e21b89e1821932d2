// Sums of the values of each code, in integers (common/code_sums.h). One pass over a row finds its
// largest magnitude, a second adds its values to tables, bound by one addition in memory per value.
// Floats that are not much smaller than the largest are multiples of one unit, and doubles add up
// exactly as integers do while sums stay below 2^53 units: these take the short way. The others,
// and all doubles, add the high and the low word at once, as a vector of two integers.
#include "common/code_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

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

// Groups with a value below `least` (its bits), but not 0, go to the pairs.
template <bool kWide>
__attribute__((noinline)) void add_units(const float* x, const uint8_t* codes, int64_t size,
                                         int64_t ahead, int32_t least, const rf::FixedPoint& point,
                                         UnitTables& units, PairTables& pairs) {
  using Words = rf::vector_t<uint32_t, 4 * kGroup>;
  using Ints = rf::vector_t<int32_t, 4 * kGroup>;
  // Magnitudes moved so that 0 is the largest number, and all others are in order below it.
  constexpr uint32_t kMove = 0x7fffffffu;
  const int32_t limit = static_cast<int32_t>(kMove + static_cast<uint32_t>(least));
  for_groups(x, codes, size, ahead,
             [&](const float* group, uint64_t tags) __attribute__((always_inline)) {
               const Words moved = (rf::load_as<Words>(group) & kMove) + kMove;
               if (__builtin_expect(rf::any_true(reinterpret_cast<Ints>(moved) < limit), false)) {
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
}

// The rows of one thread.
template <typename T>
class CodeSums {
 public:
  CodeSums(int64_t f, int64_t count) : f_(f), count_(count), row_bits_(rf::log2_above(f)) {}

  void run(const T* row, const uint8_t* codes, double* out) {
    bits_t<V> bits = 0;
    for_chunks(row, [&](const V* x, int64_t, int64_t n) { bits = largest_bits(x, n, bits); });
    const double largest = static_cast<double>(rf::load_as<V>(&bits));
    if (!std::isfinite(largest)) {
      std::fill(out, out + count_, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    units_.clear(count_);
    pairs_.clear(count_);
    const rf::FixedPoint point(largest, f_);
    row_bits_ < 11 ? add<true>(row, codes, largest, point) : add<false>(row, codes, largest, point);
    for (int64_t c = 0; c < count_; ++c) {
      const Pair sum = pairs_.total(c);
      const double units = units_.total(c) * point.up_high * point.up_more;
      out[c] = point.join(static_cast<int64_t>(units) + static_cast<int64_t>(sum[0]),
                          static_cast<int64_t>(sum[1]));
    }
  }

 private:
  using V = rf::compute_t<T>;

  template <bool kWide>
  void add(const T* row, const uint8_t* codes, double largest, const rf::FixedPoint& point) {
    // A float in [2^(e-1), 2^e) is a multiple of 2^(e-24) and of 2^-149. The sum of f of them is
    // below 2^53 units if the unit is f * 2^above / 2^53.
    int above = 0;
    std::frexp(largest, &above);
    const int exponent = above + row_bits_ - 30;
    const float least = exponent > -126 ? std::ldexp(1.0f, exponent) : 0.0f;
    for_chunks(row, [&](const V* x, int64_t begin, int64_t size) {
      if constexpr (sizeof(V) == 4) {
        add_units<kWide>(x, codes + begin, size, ahead(), rf::load_as<int32_t>(&least), point,
                         units_, pairs_);
      } else {
        add_all_pairs<kWide>(x, codes + begin, size, ahead(), point, pairs_);
      }
    });
  }

  // Rows that stay in the L2 cache together with the next one.
  int64_t ahead() const { return f_ * static_cast<int64_t>(sizeof(V)) <= 256 * 1024 ? f_ : 0; }

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
  int row_bits_;  // how many more a sum has than its terms
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
    rf::parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
      CodeSums<T> sums(f, count);
      for (int64_t i = begin; i < end; ++i) {
        sums.run(static_cast<const T*>(in) + i * f, codes + i * f, out + i * count);
      }
    });
  });
  return known ? RF_OK : rf::fail_dtype("code_sums", dtype);
}
