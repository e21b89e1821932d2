// Rows of bytes as rows of bits.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "cpu/support/simd.h"

namespace rf {

// Without the instruction (x86-64 before v2, NEON) the compiler's builtin is a call: adds up bits,
// pairs, nibbles and bytes instead.
inline int64_t count_bits(uint64_t v) {
#if defined(__POPCNT__)
  return __builtin_popcountll(v);
#else
  v -= v >> 1 & 0x5555555555555555u;
  v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
  return static_cast<int64_t>(((v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
#endif
}

// How many bits of each byte of a vector are 1.
__attribute__((always_inline)) inline vector_t<uint64_t> byte_counts(vector_t<uint64_t> v) {
#if defined(__AVX2__)
  const __m256i counts = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                          0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i bits = reinterpret_cast<__m256i>(v), nibble = _mm256_set1_epi8(15);
  const __m256i low = _mm256_shuffle_epi8(counts, _mm256_and_si256(bits, nibble));
  const __m256i high =
      _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16(bits, 4), nibble));
  return reinterpret_cast<vector_t<uint64_t>>(_mm256_add_epi8(low, high));
#else
  v -= v >> 1 & 0x5555555555555555u;
  v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
  return (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
#endif
}

// Bit i: whether bytes[i] is not 0, for 64 bytes.
inline uint64_t nonzero_bits(const uint8_t* bytes) {
  uint64_t bits = 0;
#if defined(__AVX2__)
  for (int k = 0; k < 2; ++k) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 32 * k));
    const int zero = _mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_setzero_si256()));
    bits |= static_cast<uint64_t>(~static_cast<uint32_t>(zero)) << 32 * k;
  }
#elif defined(__SSE2__)
  for (int k = 0; k < 4; ++k) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * k));
    const int zero = _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_setzero_si128()));
    bits |= static_cast<uint64_t>(~zero & 0xffff) << 16 * k;
  }
#else
  for (int k = 0; k < 8; ++k) {
    constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7fu;
    const uint64_t v = load_as<uint64_t>(bytes + 8 * k);  // little endian
    const uint64_t ones = (((v & kLow) + kLow) | v) >> 7 & 0x0101010101010101u;
    bits |= (ones * 0x0102040810204080u >> 56) << 8 * k;
  }
#endif
  return bits;
}

// The bits of a row, in ceil(w / 64) words: bit i is whether row[i] is not 0, those beyond the row
// are 0. Bytes up to `end` may be read.
inline void pack_bits(const uint8_t* row, int64_t w, const uint8_t* end, uint64_t* out) {
  int64_t x = 0;
  for (; x + 64 <= w; x += 64) *out++ = nonzero_bits(row + x);
  if (x == w) return;
  const uint64_t inside = (uint64_t{1} << (w - x)) - 1;
  if (end - row >= x + 64) {
    *out = nonzero_bits(row + x) & inside;
    return;
  }
  uint8_t rest[64] = {};
  std::memcpy(rest, row + x, w - x);
  *out = nonzero_bits(rest);
}

}  // namespace rf
