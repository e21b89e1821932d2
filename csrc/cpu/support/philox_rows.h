// Runs of consecutive Philox features, many blocks at a time so that the compiler vectorises over
// blocks. Bit for bit the numbers of philox_normal / uniform_from_word(philox_word(...)).
#pragma once

#include <cstdint>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "common/philox.h"

namespace rf {

constexpr int64_t kPhiloxRowSlack = 68;  // extra floats that the buffer of philox_row needs

// Ten rounds on kBatch blocks, in place.
template <int kBatch>
inline void philox_rounds(uint32_t* w0, uint32_t* w1, uint32_t* w2, uint32_t* w3, uint64_t seed) {
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#ifdef __AVX2__  // GCC finds no 32 x 32 -> 64 bit vector products in the loop below
  static_assert(kBatch % 8 == 0, "whole vectors");
  constexpr int kVectors = kBatch / 8;
  __m256i a[kVectors], b[kVectors], c[kVectors], d[kVectors];
  const auto load8 = [](const uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  };
  const auto store8 = [](uint32_t* p, __m256i v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  };
  for (int i = 0; i < kVectors; ++i) {
    a[i] = load8(w0 + 8 * i), b[i] = load8(w1 + 8 * i), c[i] = load8(w2 + 8 * i),
    d[i] = load8(w3 + 8 * i);
  }
  const __m256i mul0 = _mm256_set1_epi32(static_cast<int>(0xD2511F53u));
  const __m256i mul1 = _mm256_set1_epi32(static_cast<int>(0xCD9E8D57u));
  const auto product = [](__m256i x, __m256i m, __m256i* low, __m256i* high) {
    const __m256i even = _mm256_mul_epu32(x, m),
                  odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  };
  for (int round = 0; round < 10; ++round) {
    const __m256i key0 = _mm256_set1_epi32(static_cast<int>(k0)),
                  key1 = _mm256_set1_epi32(static_cast<int>(k1));
    for (int i = 0; i < kVectors; ++i) {
      __m256i low0, high0, low1, high1;
      product(a[i], mul0, &low0, &high0);
      product(c[i], mul1, &low1, &high1);
      a[i] = _mm256_xor_si256(_mm256_xor_si256(high1, b[i]), key0);
      c[i] = _mm256_xor_si256(_mm256_xor_si256(high0, d[i]), key1);
      b[i] = low1, d[i] = low0;
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kVectors; ++i) {
    store8(w0 + 8 * i, a[i]), store8(w1 + 8 * i, b[i]), store8(w2 + 8 * i, c[i]),
        store8(w3 + 8 * i, d[i]);
  }
#else
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kBatch; ++i) {
      const uint32_t high0 = philox_mulhi(0xD2511F53u, w0[i]), low0 = 0xD2511F53u * w0[i];
      const uint32_t high1 = philox_mulhi(0xCD9E8D57u, w2[i]), low1 = 0xCD9E8D57u * w2[i];
      w0[i] = high1 ^ w1[i] ^ k0;
      w1[i] = low1;
      w2[i] = high0 ^ w3[i] ^ k1;
      w3[i] = low0;
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
#endif
}

// Standard normals (or uniforms) of features [first, first + count) start at the returned pointer
// into `buffer`, which has room for count + kPhiloxRowSlack floats.
inline const float* philox_row(uint64_t seed, int64_t sample, int64_t first, int64_t count,
                               PhiloxDomain domain, bool normal, float* buffer) {
  constexpr int kBatch = 16;
  const int64_t first_block = first >> 2, end_block = (first + count + 3) >> 2;
  const uint64_t s = static_cast<uint64_t>(sample);
  for (int64_t block = first_block; block < end_block; block += kBatch) {
    uint32_t w0[kBatch], w1[kBatch], w2[kBatch], w3[kBatch];
    for (int i = 0; i < kBatch; ++i) {
      const uint64_t b = static_cast<uint64_t>(block) + static_cast<uint64_t>(i);
      w0[i] = static_cast<uint32_t>(b);
      w1[i] = static_cast<uint32_t>((b >> 32) & 0xffffu) | (static_cast<uint32_t>(domain) << 16);
      w2[i] = static_cast<uint32_t>(s);
      w3[i] = static_cast<uint32_t>(s >> 32);
    }
    philox_rounds<kBatch>(w0, w1, w2, w3, seed);
    float* out = buffer + 4 * (block - first_block);
    if (!normal) {
      for (int i = 0; i < kBatch; ++i) {
        out[4 * i] = uniform_from_word(w0[i]), out[4 * i + 1] = uniform_from_word(w1[i]);
        out[4 * i + 2] = uniform_from_word(w2[i]), out[4 * i + 3] = uniform_from_word(w3[i]);
      }
      continue;
    }
    float a[kBatch], b[kBatch], c[kBatch], d[kBatch];
    const auto box_muller = [](const uint32_t* u, const uint32_t* v, float* x, float* y) {
      for (int i = 0; i < kBatch; ++i) {
        const float radius = sqrtf(-2.0f * log_uniform(u[i] >> 8));
        float cosine, sine;
        cos_sin_turn(v[i] >> 8, &cosine, &sine);
        x[i] = radius * cosine, y[i] = radius * sine;
      }
    };
    box_muller(w0, w1, a, b);
    box_muller(w2, w3, c, d);
    for (int i = 0; i < kBatch; ++i) {
      out[4 * i] = a[i], out[4 * i + 1] = b[i], out[4 * i + 2] = c[i], out[4 * i + 3] = d[i];
    }
  }
  return buffer + (first & 3);
}

}  // namespace rf
