// Copying the values of an interval out of a row, in whole vectors and without branches: the cost
// does not depend on how many there are.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/support/simd.h"

namespace rf {

// Room that buffers need beyond their values: what keep_between may write, and FewValues read.
constexpr int64_t kCompressSlack = 64;

#ifdef __AVX2__
// Byte w of order[mask]: which 32-bit word of a vector goes to word w so that the lanes in `mask`
// come first. kWords is the number of words in a lane.
template <int kWords>
struct CompressTable {
  alignas(64) uint64_t order[1 << (8 / kWords)];

  constexpr CompressTable() : order() {
    for (int mask = 0; mask < (1 << (8 / kWords)); ++mask) {
      int next = 0;
      for (int lane = 0; lane < 8 / kWords; ++lane) {
        if (!(mask >> lane & 1)) continue;
        for (int word = 0; word < kWords; ++word)
          order[mask] |= static_cast<uint64_t>(lane * kWords + word) << (8 * next++);
      }
    }
  }
};
template <int kWords>
inline constexpr CompressTable<kWords> kCompressTable{};

// Writes the lanes of v that are true in `mask` to out, and returns how many there are.
template <typename Values, typename Mask>
__attribute__((always_inline)) inline int compress(Values v, Mask mask, void* out) {
  constexpr int kWords = sizeof(v[0]) / 4;
  int lanes;
  if constexpr (kWords == 1) {
    lanes = _mm256_movemask_ps(reinterpret_cast<__m256>(mask));
  } else {
    lanes = _mm256_movemask_pd(reinterpret_cast<__m256d>(mask));
  }
  const __m256i order = _mm256_cvtepu8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kCompressTable<kWords>.order + lanes)));
  _mm256_storeu_si256(static_cast<__m256i*>(out),
                      _mm256_permutevar8x32_epi32(reinterpret_cast<__m256i>(v), order));
  return __builtin_popcount(static_cast<unsigned>(lanes));
}
#endif

// Copies the values in [low, high] to `out`, in their order, and returns how many they are; *below
// is how many are smaller than low. `out` has room for n + kCompressSlack values, and may be x.
template <typename V>
int64_t keep_between(const V* x, int64_t n, V low, V high, V* out, int64_t* below) {
  int64_t i = 0, kept = 0, smaller = 0;
#ifdef __AVX2__
  constexpr int kLanes = 32 / sizeof(V);
  using Values = vector_t<V, 32>;
  auto counts = Values{} < Values{};
  for (; i + kLanes <= n; i += kLanes) {
    const Values v = load_as<Values>(x + i);
    const auto under = v < low;
    counts -= under;
    kept += compress(v, ~under & (v <= high), out + kept);
  }
  for (int lane = 0; lane < kLanes; ++lane) smaller += counts[lane];
#endif
  for (; i < n; ++i) {
    const V v = x[i];
    out[kept] = v;
    kept += (v >= low) & (v <= high);
    smaller += v < low;
  }
  *below = smaller;
  return kept;
}

// Copies hashes[i] of the values that equal v to `out`, in their order, and returns how many they
// are. `out` has room for n + kCompressSlack.
template <typename V>
int64_t keep_ties(const V* x, const uint32_t* hashes, int64_t n, V v, uint32_t* out) {
  int64_t i = 0, kept = 0;
#ifdef __AVX2__
  using Values = vector_t<V, 8 * sizeof(V)>;
  using Hashes = vector_t<uint32_t, 32>;
  using Mask = vector_t<int32_t, 32>;
  for (; i + 8 <= n; i += 8) {
    const auto tied = __builtin_convertvector(load_as<Values>(x + i) == v, Mask);
    kept += compress(load_as<Hashes>(hashes + i), tied, out + kept);
  }
#endif
  for (; i < n; ++i) {
    out[kept] = hashes[i];
    kept += x[i] == v;
  }
  return kept;
}

}  // namespace rf
