// Philox words of consecutive features, several blocks at a time: the loops over lanes vectorise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "common/philox.h"

namespace rf {

// Blocks drawn at a time; each has 4 words.
constexpr int kLaneBlocks = 16;

namespace lanes {

constexpr int kWidth = 4;
typedef uint64_t Vector __attribute__((vector_size(8 * kWidth)));

// Vectors passed by value warn below AVX; everything here is inlined, so no ABI is involved.
#pragma GCC diagnostic ignored "-Wpsabi"

// Full products of the low halves of each lane.
__attribute__((always_inline)) inline Vector multiply_low(Vector a, uint32_t m) {
#ifdef __AVX2__
  return reinterpret_cast<Vector>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), _mm256_set1_epi64x(static_cast<int64_t>(m))));
#else
  return (a & 0xffffffffull) * static_cast<uint64_t>(m);
#endif
}

}  // namespace lanes

// The words of kLaneBlocks blocks from `block` on, as out[4 * lane + word] (little endian).
// Counters sit in the low halves of 64-bit lanes; what piles up in the high halves is never read.
inline void philox_lanes(uint64_t seed, int64_t sample, int64_t block, PhiloxDomain domain,
                         uint32_t* out) {
  using lanes::Vector;
  constexpr int kGroups = kLaneBlocks / lanes::kWidth;
  const uint64_t s = static_cast<uint64_t>(sample);
  for (int first = 0; first < kGroups;
       first += 2) {  // two groups at once hide the latency of multiplication
    Vector c0[2], c1[2], c2[2], c3[2];
    for (int g = 0; g < 2; ++g) {
      const Vector b =
          Vector{0, 1, 2, 3} + (static_cast<uint64_t>(block) + (first + g) * lanes::kWidth);
      c0[g] = b;
      c1[g] = ((b >> 32) & 0xffffull) | (static_cast<uint64_t>(domain) << 16);
      c2[g] = Vector{} + s;
      c3[g] = Vector{} + (s >> 32);
    }
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int g = 0; g < 2; ++g) {
        const Vector p0 = lanes::multiply_low(c0[g], 0xD2511F53u),
                     p1 = lanes::multiply_low(c2[g], 0xCD9E8D57u);
        c0[g] = (p1 >> 32) ^ c1[g] ^ static_cast<uint64_t>(k0);
        c2[g] = (p0 >> 32) ^ c3[g] ^ static_cast<uint64_t>(k1);
        c1[g] = p1;
        c3[g] = p0;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int g = 0; g < 2; ++g) {
      const Vector low = (c0[g] & 0xffffffffull) | (c1[g] << 32),
                   high = (c2[g] & 0xffffffffull) | (c3[g] << 32);
      const Vector blocks01 = __builtin_shufflevector(low, high, 0, 4, 1, 5);
      const Vector blocks23 = __builtin_shufflevector(low, high, 2, 6, 3, 7);
      std::memcpy(out + 16 * (first + g), &blocks01, sizeof(Vector));
      std::memcpy(out + 16 * (first + g) + 8, &blocks23, sizeof(Vector));
    }
  }
}

// Calls body(first, count, words) over the features [0, f)
// of a sample, in groups of up to 4 * kLaneBlocks.
template <typename Body>
void for_philox_words(uint64_t seed, int64_t sample, int64_t f, PhiloxDomain domain,
                      const Body& body) {
  alignas(64) uint32_t words[4 * kLaneBlocks];
  for (int64_t first = 0; first < f; first += 4 * kLaneBlocks) {
    philox_lanes(seed, sample, first >> 2, domain, words);
    body(first, static_cast<int>(std::min<int64_t>(4 * kLaneBlocks, f - first)), words);
  }
}

}  // namespace rf
