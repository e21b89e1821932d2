// Philox for runs of consecutive features, several blocks at a time in vectors. Bit for bit the
// numbers of common/philox.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/philox.h"
#include "cpu/support/simd.h"

namespace rf {

// Blocks drawn at a time, and their words.
constexpr int kPhiloxBlocks = 16, kPhiloxWords = 4 * kPhiloxBlocks;

// The words of kPhiloxBlocks blocks from `block` on, in the order of features. Counters sit in the
// low halves of 64-bit lanes; what piles up in the high halves is never read.
inline void philox_words(uint64_t seed, int64_t sample, int64_t block, PhiloxDomain domain,
                         uint32_t* out) {
  constexpr int kWidth = 4;
  using Lanes = vector_t<uint64_t, 8 * kWidth>;
  const auto multiply_low = [](Lanes a, uint32_t m) __attribute__((always_inline)) {
#ifdef __AVX2__
    return reinterpret_cast<Lanes>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a),
                                                    _mm256_set1_epi64x(static_cast<int64_t>(m))));
#else
    return (a & 0xffffffffull) * static_cast<uint64_t>(m);
#endif
  };
  const uint64_t s = static_cast<uint64_t>(sample);
  // Two groups of blocks at once hide the latency of multiplication.
  for (int first = 0; first < kPhiloxBlocks; first += 2 * kWidth) {
    Lanes c0[2], c1[2], c2[2], c3[2];
    for (int g = 0; g < 2; ++g) {
      const Lanes b = Lanes{0, 1, 2, 3} + (static_cast<uint64_t>(block) + first + g * kWidth);
      c0[g] = b;
      c1[g] = ((b >> 32) & 0xffffull) | (static_cast<uint64_t>(domain) << 16);
      c2[g] = Lanes{} + s;
      c3[g] = Lanes{} + (s >> 32);
    }
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int g = 0; g < 2; ++g) {
        const Lanes p0 = multiply_low(c0[g], kPhiloxMultiplier0),
                    p1 = multiply_low(c2[g], kPhiloxMultiplier1);
        c0[g] = (p1 >> 32) ^ c1[g] ^ static_cast<uint64_t>(k0);
        c2[g] = (p0 >> 32) ^ c3[g] ^ static_cast<uint64_t>(k1);
        c1[g] = p1;
        c3[g] = p0;
      }
      k0 += kPhiloxWeyl0;
      k1 += kPhiloxWeyl1;
    }
    for (int g = 0; g < 2; ++g) {
      const Lanes low = (c0[g] & 0xffffffffull) | (c1[g] << 32),
                  high = (c2[g] & 0xffffffffull) | (c3[g] << 32);
      store_as(out + 4 * (first + g * kWidth), shuffle<0, 4, 1, 5>(low, high));
      store_as(out + 4 * (first + g * kWidth) + 8, shuffle<2, 6, 3, 7>(low, high));
    }
  }
}

// The standard normals of kPhiloxWords words, by Box-Muller: two words give two.
inline void normals_from_words(const uint32_t* words, float* out) {
  constexpr int kPairs = kPhiloxWords / 2;
  float radius[kPairs], cosine[kPairs], sine[kPairs];
  for (int i = 0; i < kPairs; ++i) radius[i] = sqrtf(-2.0f * log_uniform(words[2 * i] >> 8));
  for (int i = 0; i < kPairs; ++i) cos_sin_turn(words[2 * i + 1] >> 8, &cosine[i], &sine[i]);
  for (int i = 0; i < kPairs; ++i) {
    out[2 * i] = radius[i] * cosine[i];
    out[2 * i + 1] = radius[i] * sine[i];
  }
}

// Standard normals (or uniforms) of features [first, first + count) start at the returned pointer
// into `buffer`, which has room for count + kPhiloxSlack floats.
constexpr int64_t kPhiloxSlack = kPhiloxWords + 4;
inline const float* philox_row(uint64_t seed, int64_t sample, int64_t first, int64_t count,
                               PhiloxDomain domain, bool normal, float* buffer) {
  const int64_t first_block = first >> 2, end_block = (first + count + 3) >> 2;
  for (int64_t block = first_block; block < end_block; block += kPhiloxBlocks) {
    alignas(64) uint32_t words[kPhiloxWords];
    philox_words(seed, sample, block, domain, words);
    float* out = buffer + 4 * (block - first_block);
    if (normal) {
      normals_from_words(words, out);
    } else {
      for (int i = 0; i < kPhiloxWords; ++i) out[i] = uniform_from_word(words[i]);
    }
  }
  return buffer + (first & 3);
}

}  // namespace rf
