// From vectors of 32-bit numbers to bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/support/simd.h"

namespace rf {

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
