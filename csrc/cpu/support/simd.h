// The widest vector of the SIMD level a file is compiled for,
// by GCC/Clang vector extensions, and loops over rows in whole vectors.
// The same source serves SSE2, AVX2 and NEON; intrinsics stand only where the
// compilers miss an instruction, and never without a portable form beside them.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#ifdef __AVX2__
#include <immintrin.h>
#endif

// Vectors passed by value would warn below AVX; all
// functions here are inlined, so no ABI is involved.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rf {

#if defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

// Vectors of C: those that one register holds (GCC computes with wider ones number by number), or
// of kBytes at every level, where lanes decide the order of sums.
template <typename C, int kBytes = kVectorBytes>
struct Vector {
  typedef C type __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(C));
};
template <typename C, int kBytes = kVectorBytes>
using vector_t = typename Vector<C, kBytes>::type;

// shuffle<lanes...>(a, b): those lanes of a followed by b. GCC 11 has only the builtin of its own.
template <int... kLanes, typename V>
__attribute__((always_inline)) inline V shuffle(V a, V b) {
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(a, b, kLanes...);
#else
  return __builtin_shuffle(a, b, decltype(a < b){kLanes...});
#endif
}

// load_as<V>(p) and store_as(p, v) for a vector or a scalar V, unaligned.
template <typename V, typename C>
__attribute__((always_inline)) inline V load_as(const C* p) {
  V v;
  memcpy(&v, p, sizeof(V));
  return v;
}
template <typename V, typename C>
__attribute__((always_inline)) inline void store_as(C* p, V v) {
  memcpy(p, &v, sizeof(V));
}

// Eight bytes as integers.
using Ints = vector_t<int32_t, 32>;
__attribute__((always_inline)) inline Ints load_bytes(const uint8_t* p) {
#ifdef __AVX2__  // GCC takes the portable form apart, byte by byte
  return reinterpret_cast<Ints>(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  return Ints{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};
#endif
}

// v, which the compiler must not load again where it is used a second time: GCC likes to fold loads
// into arithmetic, and those that cross a cache line cost more than a move.
template <typename V>
__attribute__((always_inline)) inline V in_register(V v) {
#if defined(__x86_64__)
  __asm__("" : "+x"(v));
#endif
  return v;
}

// An integer that the compiler must not compute again from what it was made of.
__attribute__((always_inline)) inline uint64_t computed(uint64_t v) {
  __asm__("" : "+r"(v));
  return v;
}

// An array that the compiler must write before its elements are read: it likes to take vectors
// apart, which costs more than a store that is forwarded to the loads.
template <typename Array>
__attribute__((always_inline)) inline void in_memory(Array& array) {
  __asm__("" : "+m"(array));
}

// a > b ? a : b compiles to the max instruction, and gives b where a is NaN.
template <typename V>
__attribute__((always_inline)) inline V max_of(V a, V b) {
  return a > b ? a : b;
}

// A vector of floats or doubles as doubles.
template <typename V>
__attribute__((always_inline)) inline auto to_doubles(V v) {
  using Doubles = vector_t<double, sizeof(V) / sizeof(v[0]) * sizeof(double)>;
#ifdef __AVX2__  // GCC 12 converts half a vector at a time
  if constexpr (sizeof(Doubles) == 32 && sizeof(V) == 16) return Doubles(_mm256_cvtps_pd(v));
#endif
  return __builtin_convertvector(v, Doubles);
}

// a < b ? a : b is the min instruction, and gives b where a is NaN.
template <typename V>
__attribute__((always_inline)) inline V min_of(V a, V b) {
  return a < b ? a : b;
}

// The vector that begins kBy lanes into a and continues in b; kBy is at most the number of lanes.
template <int kBy, typename V, size_t... kLane>
__attribute__((always_inline)) inline V shifted_lanes(V a, V b, std::index_sequence<kLane...>) {
  return shuffle<(static_cast<int>(kLane) + kBy)...>(a, b);
}
template <int kBy, typename V>
__attribute__((always_inline)) inline V shifted(V a, V b) {
  constexpr size_t kLanes = sizeof(V) / sizeof(a[0]);
  if constexpr (kBy == kLanes) return b;
  return shifted_lanes<kBy>(a, b, std::make_index_sequence<kLanes>{});
}

// The lanes of v from the last to the first.
template <typename V, size_t... kLane>
__attribute__((always_inline)) inline V reversed_lanes(V v, std::index_sequence<kLane...>) {
  return shuffle<static_cast<int>(sizeof...(kLane) - 1 - kLane)...>(v, v);
}
template <typename V>
__attribute__((always_inline)) inline V reversed(V v) {
  return reversed_lanes(v, std::make_index_sequence<sizeof(V) / sizeof(v[0])>{});
}

// |v| of a vector of floats or doubles.
template <typename V>
__attribute__((always_inline)) inline V abs_of(V v) {
  typedef decltype(v < v) Bits;  // the vector of signed integers of the same width
  return reinterpret_cast<V>(reinterpret_cast<Bits>(v) & ~reinterpret_cast<Bits>(-V{}));
}

// Computes dst[x] for x in [0, w) by block.template run<V, K>(x): K values of type V from x on.
// Wide blocks first, then single vectors, the last of which overlaps its predecessor instead of
// leaving a scalar tail. So dst must not be an input, unless block reads only at or after x and w
// is a multiple of the vector.
template <typename C, typename Block>
__attribute__((always_inline)) inline void for_vectors(int64_t w, const Block& block) {
  using V = vector_t<C>;
  constexpr int kLanes = Vector<C>::kLanes;
  constexpr int kWide = 4;  // enough independent sums to hide the latency of an add on Zen 3
  int64_t x = 0;
  for (; x + kWide * kLanes <= w; x += kWide * kLanes) block.template run<V, kWide>(x);
  for (; x + kLanes <= w; x += kLanes) block.template run<V, 1>(x);
  if (x == w) return;
  if (w >= kLanes) {
    block.template run<V, 1>(w - kLanes);
    return;
  }
  for (; x < w; ++x) block.template run<C, 1>(x);
}

// ---- vectors of 32-bit numbers to bytes, and masks

// out[0..32): the numbers of four vectors, clipped to [0, 255].
__attribute__((always_inline)) inline void pack_bytes(const Ints* v, uint8_t* out) {
#ifdef __AVX2__
  const auto bits = [](Ints a) { return reinterpret_cast<__m256i>(a); };
  // Packing works within the halves of vectors, which leaves groups of four out of order.
  const __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(bits(v[0]), bits(v[1])),
                                             _mm256_packs_epi32(bits(v[2]), bits(v[3])));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permutevar8x32_epi32(packed, order));
#else
  for (int i = 0; i < 32; ++i) {
    const int32_t lane = v[i / 8][i % 8];
    out[i] = static_cast<uint8_t>(lane < 0 ? 0 : lane > 255 ? 255 : lane);
  }
#endif
}

// How many lanes of a mask are true.
template <typename Mask>
__attribute__((always_inline)) inline int count_true(Mask mask) {
#ifdef __AVX2__
  const __m256i bytes = reinterpret_cast<__m256i>(mask);
  return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_epi8(bytes))) /
         static_cast<int>(sizeof(mask[0]));
#else
  int count = 0;
  for (size_t lane = 0; lane < sizeof(mask) / sizeof(mask[0]); ++lane) count += mask[lane] != 0;
  return count;
#endif
}

// Whether some lane of a mask of 32 bytes is true.
template <typename Mask>
__attribute__((always_inline)) inline bool any_true(Mask mask) {
#ifdef __AVX2__
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(mask)) != 0;
#else
  using Words = vector_t<uint64_t, 32>;
  const Words words = reinterpret_cast<Words>(mask);
  return (words[0] | words[1] | words[2] | words[3]) != 0;
#endif
}

// out[0..32) from x[0..32): number(vector) gives one number in [0, 255] for each value.
template <typename V, typename Number>
__attribute__((always_inline)) inline void map_to_bytes(const V* x, uint8_t* out,
                                                        const Number& number) {
  using Values = vector_t<V>;
  constexpr int kLanes = Vector<V>::kLanes;
  using Part = vector_t<int32_t, 4 * kLanes>;
  Ints numbers[4];
  for (int k = 0; k < 32 / kLanes; ++k) {
    const Part part = __builtin_convertvector(number(load_as<Values>(x + k * kLanes)), Part);
    std::memcpy(reinterpret_cast<unsigned char*>(numbers) + k * sizeof(Part), &part, sizeof(Part));
  }
  pack_bytes(numbers, out);
}

}  // namespace rf
