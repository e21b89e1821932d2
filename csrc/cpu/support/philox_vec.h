// Philox for runs of consecutive features, several blocks at a time in vectors. Bit for bit the
// numbers of common/philox.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/philox.h"
#include "cpu/support/simd.h"

namespace rf {

// Four blocks: a vector for each of their words, in the low halves of 64-bit lanes. What is in the
// high halves is not looked at.
struct FourBlocks {
  using Lanes = vector_t<uint64_t, 32>;
  Lanes w[4];
};
constexpr int kPhiloxLanes = 4, kPhiloxGroups = 2;

// Eight blocks from `block` on. Two groups at once hide the latency of multiplication.
__attribute__((always_inline)) inline void philox_groups(uint64_t seed, int64_t sample,
                                                         int64_t block, PhiloxDomain domain,
                                                         FourBlocks groups[kPhiloxGroups]) {
  using Lanes = FourBlocks::Lanes;
  const auto multiply_low = [](Lanes a, uint32_t m) __attribute__((always_inline)) {
#ifdef __AVX2__
    return reinterpret_cast<Lanes>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a),
                                                    _mm256_set1_epi64x(static_cast<int64_t>(m))));
#else
    return (a & 0xffffffffull) * static_cast<uint64_t>(m);
#endif
  };
  const uint64_t s = static_cast<uint64_t>(sample);
  for (int g = 0; g < kPhiloxGroups; ++g) {
    Lanes(&w)[4] = groups[g].w;
    const Lanes b = Lanes{0, 1, 2, 3} + (static_cast<uint64_t>(block) + g * kPhiloxLanes);
    w[0] = b;
    w[1] = ((b >> 32) & 0xffffull) | (static_cast<uint64_t>(domain) << 16);
    w[2] = Lanes{} + s;
    w[3] = Lanes{} + (s >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int g = 0; g < kPhiloxGroups; ++g) {
      Lanes(&w)[4] = groups[g].w;
      const Lanes p0 = multiply_low(w[0], kPhiloxMultiplier0),
                  p1 = multiply_low(w[2], kPhiloxMultiplier1);
      w[0] = (p1 >> 32) ^ w[1] ^ static_cast<uint64_t>(k0);
      w[2] = (p0 >> 32) ^ w[3] ^ static_cast<uint64_t>(k1);
      w[1] = p1;
      w[3] = p0;
    }
    k0 += kPhiloxWeyl0;
    k1 += kPhiloxWeyl1;
  }
}

// The low halves of a and b, in turns.
__attribute__((always_inline)) inline vector_t<uint32_t, 32> low_halves(FourBlocks::Lanes a,
                                                                        FourBlocks::Lanes b) {
  return reinterpret_cast<vector_t<uint32_t, 32>>((a & 0xffffffffull) | (b << 32));
}

// Blocks drawn at a time, and their words.
constexpr int kPhiloxBlocks = 16, kPhiloxWords = 4 * kPhiloxBlocks;

// The words of kPhiloxBlocks blocks from `block` on, in the order of features.
inline void philox_words(uint64_t seed, int64_t sample, int64_t block, PhiloxDomain domain,
                         uint32_t* out) {
  constexpr int kStep = kPhiloxGroups * kPhiloxLanes;
  for (int first = 0; first < kPhiloxBlocks; first += kStep) {
    FourBlocks groups[kPhiloxGroups];
    philox_groups(seed, sample, block + first, domain, groups);
    for (int g = 0; g < kPhiloxGroups; ++g) {
      using Lanes = FourBlocks::Lanes;
      const FourBlocks& of = groups[g];
      const Lanes low = reinterpret_cast<Lanes>(low_halves(of.w[0], of.w[1])),
                  high = reinterpret_cast<Lanes>(low_halves(of.w[2], of.w[3]));
      store_as(out + 4 * (first + g * kPhiloxLanes), shuffle<0, 4, 1, 5>(low, high));
      store_as(out + 4 * (first + g * kPhiloxLanes) + 8, shuffle<2, 6, 3, 7>(low, high));
    }
  }
}

// Eight at a time: log_uniform, cos_sin_turn and the square
// root of common/philox.h, operation by operation.
namespace normals {

using Words = vector_t<uint32_t, 32>;
using Ints = vector_t<int32_t, 32>;
using Floats = vector_t<float, 32>;

__attribute__((always_inline)) inline Floats log_uniform(Words k) {
  const Words bits =
      reinterpret_cast<Words>(__builtin_convertvector(reinterpret_cast<Ints>(k + 1u), Floats));
  const Floats whole = reinterpret_cast<Floats>((bits & 0x007fffffu) | 0x3f800000u);
  const Ints large = whole > 1.41421354f;  // -1 where true
  const Floats m = large ? whole * 0.5f : whole;
  const Floats s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
  Floats p = 0.2222222222f * s2 + 0.2857142857f;
  p = p * s2 + 0.4f;
  p = p * s2 + 0.6666666667f;
  p = p * s2 + 2.0f;
  p = p * s;
  const Floats e =
      __builtin_convertvector(reinterpret_cast<Ints>(bits >> 23) - (127 + 24) - large, Floats);
  return e * 0.693145752f + (p + e * 1.42860677e-6f);
}

__attribute__((always_inline)) inline Floats square_root(Floats x) {
#ifdef __AVX2__
  return reinterpret_cast<Floats>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
#else
  for (int i = 0; i < 8; ++i) x[i] = sqrtf(x[i]);
  return x;
#endif
}

__attribute__((always_inline)) inline void cos_sin_turn(Words k, Floats* cosine, Floats* sine) {
  const Words quadrant = (k + (1u << 21)) >> 22;
  const Floats x = __builtin_convertvector(reinterpret_cast<Ints>(k - (quadrant << 22)), Floats) *
                   3.74507035e-7f,
               x2 = x * x;
  Floats s = 2.75573164e-6f * x2 - 1.98412701e-4f;
  s = s * x2 + 8.33333377e-3f;
  s = s * x2 - 0.166666672f;
  s = s * x2 * x + x;
  Floats c = 2.48015876e-5f * x2 - 1.38888892e-3f;
  c = c * x2 + 4.16666679e-2f;
  c = c * x2 - 0.5f;
  c = c * x2 + 1.0f;
  // Signs are bits that are flipped: cosine in quadrants 1 and 2, sine in 2 and 3.
  const Ints odd = reinterpret_cast<Ints>(quadrant << 31) < 0;
  const Words first = reinterpret_cast<Words>(odd ? s : c),
              second = reinterpret_cast<Words>(odd ? c : s);
  *cosine = reinterpret_cast<Floats>(first ^ (((quadrant + 1u) & 2u) << 30));
  *sine = reinterpret_cast<Floats>(second ^ ((quadrant & 2u) << 30));
}

}  // namespace normals

// The standard normals of eight blocks, by Box-Muller: words 0 and 1 of a block give its first two
// normals, words 2 and 3 the others.
constexpr int kPhiloxNormals = 4 * kPhiloxGroups * kPhiloxLanes;
inline void philox_normals(uint64_t seed, int64_t sample, int64_t block, PhiloxDomain domain,
                           float* out) {
  FourBlocks groups[kPhiloxGroups];
  philox_groups(seed, sample, block, domain, groups);
  for (int g = 0; g < kPhiloxGroups; ++g) {
    using normals::Floats;
    const FourBlocks& of = groups[g];
    const Floats radius =
        normals::square_root(-2.0f * normals::log_uniform(low_halves(of.w[0], of.w[2]) >> 8));
    Floats cosine, sine;
    normals::cos_sin_turn(low_halves(of.w[1], of.w[3]) >> 8, &cosine, &sine);
    const Floats a = radius * cosine, b = radius * sine;
    const Floats even = shuffle<0, 8, 1, 9, 4, 12, 5, 13>(a, b),  // blocks 0 and 2, 1 and 3
        uneven = shuffle<2, 10, 3, 11, 6, 14, 7, 15>(a, b);
    store_as(out + 16 * g, shuffle<0, 1, 2, 3, 8, 9, 10, 11>(even, uneven));
    store_as(out + 16 * g + 8, shuffle<4, 5, 6, 7, 12, 13, 14, 15>(even, uneven));
  }
}

// Standard normals (or uniforms) of features [first, first + count) start at the returned pointer
// into `buffer`, which has room for count + kPhiloxSlack floats.
constexpr int64_t kPhiloxSlack = kPhiloxWords + 4;
inline const float* philox_row(uint64_t seed, int64_t sample, int64_t first, int64_t count,
                               PhiloxDomain domain, bool normal, float* buffer) {
  const int64_t first_block = first >> 2, end_block = (first + count + 3) >> 2;
  const int64_t step = normal ? kPhiloxNormals / 4 : kPhiloxBlocks;
  for (int64_t block = first_block; block < end_block; block += step) {
    float* out = buffer + 4 * (block - first_block);
    if (normal) {
      philox_normals(seed, sample, block, domain, out);
    } else {
      alignas(64) uint32_t words[kPhiloxWords];
      philox_words(seed, sample, block, domain, words);
      for (int i = 0; i < kPhiloxWords; ++i) out[i] = uniform_from_word(words[i]);
    }
  }
  return buffer + (first & 3);
}

}  // namespace rf
