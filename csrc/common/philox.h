// Counter-based randomness: Philox 4x32-10 (Salmon et al., 2011), keyed so that a sample's numbers
// do not depend on the batch it is in, the thread that draws them or the device.
//
//   key     = seed
//   counter = (block, domain, sample): block 48 bits, domain 16 bits, sample 64 bits
//
// A block yields four 32-bit words; feature f (pixel, or channel * pixels + pixel) owns word f % 4
// of block f / 4. The domain keeps ops from sharing numbers.
// Everything below uses only exactly rounded operations (+ - * / sqrt, no fused multiply-add),
// so floats agree bit for bit on every backend and with roarfast/_philox.py.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/qualifiers.h"

namespace rf {

// One number per use; never reuse or renumber (stored results depend on them).
enum PhiloxDomain : uint32_t {
  kDomainTieBreak = 1,
  kDomainPixelRandom = 2,
  kDomainBlockRandom = 3,
  kDomainNoiseFill = 4,
  kDomainImputeNoise = 5,
  kDomainAugment = 6,
  kDomainShuffle = 7,
  kDomainExplainNoise = 8,
  kDomainResizedCrop = 9,
};

struct Philox4 {
  uint32_t w[4];
};

constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9u, kPhiloxWeyl1 = 0xBB67AE85u;

RF_HD uint32_t philox_mulhi(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
}

RF_HD Philox4 philox_raw(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                         uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const uint32_t hi0 = philox_mulhi(kPhiloxMultiplier0, c0), lo0 = kPhiloxMultiplier0 * c0;
    const uint32_t hi1 = philox_mulhi(kPhiloxMultiplier1, c2), lo1 = kPhiloxMultiplier1 * c2;
    c0 = hi1 ^ c1 ^ k0;
    c1 = lo1;
    c2 = hi0 ^ c3 ^ k1;
    c3 = lo0;
    k0 += kPhiloxWeyl0;
    k1 += kPhiloxWeyl1;
  }
  return {{c0, c1, c2, c3}};
}

// The four words of one block.
RF_HD Philox4 philox_block(uint64_t seed, int64_t sample, int64_t block, PhiloxDomain domain) {
  const uint64_t s = static_cast<uint64_t>(sample), b = static_cast<uint64_t>(block);
  return philox_raw(static_cast<uint32_t>(b),
                    static_cast<uint32_t>((b >> 32) & 0xffffu) | (domain << 16),
                    static_cast<uint32_t>(s), static_cast<uint32_t>(s >> 32),
                    static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

// The word that belongs to one feature. In loops over features, draw whole blocks instead.
RF_HD uint32_t philox_word(uint64_t seed, int64_t sample, int64_t feature, PhiloxDomain domain) {
  return philox_block(seed, sample, feature >> 2, domain).w[feature & 3];
}

// Uniform in [0, 1) on a grid of 2^-24.
RF_HD float uniform_from_word(uint32_t word) {
  return static_cast<float>(word >> 8) * 5.9604644775390625e-8f;
}

// Natural logarithm of (k + 1) / 2^24 for a 24-bit k, in float:
// argument halving plus a degree-9 odd series in s = (m - 1) / (m + 1),
// |s| <= 0.1716, whose error is below one unit in the last place.
RF_HD float log_uniform(uint32_t k) {
  const float u = static_cast<float>(k + 1u);  // exact: at most 2^24
  // Scale m into [1/sqrt(2), sqrt(2)) by exact powers of two.
  union {
    float f;
    uint32_t i;
  } bits;
  bits.f = u;
  int exponent = static_cast<int>(bits.i >> 23) - 127;
  bits.i = (bits.i & 0x007fffffu) | 0x3f800000u;
  float m = bits.f;
  if (m > 1.41421354f) {
    m = m * 0.5f;
    exponent += 1;
  }
  const float s = (m - 1.0f) / (m + 1.0f);
  const float s2 = s * s;
  float p = 0.2222222222f;
  p = p * s2;
  p = p + 0.2857142857f;
  p = p * s2;
  p = p + 0.4f;
  p = p * s2;
  p = p + 0.6666666667f;
  p = p * s2;
  p = p + 2.0f;
  p = p * s;
  const float e = static_cast<float>(exponent - 24);
  const float hi = e * 0.693145752f;  // 17 significant bits: the product is exact
  const float lo = e * 1.42860677e-6f;
  return hi + (p + lo);
}

// cos and sin of 2 pi k / 2^24, in float: quadrant by the top bits, polynomials on [-pi/4, pi/4].
RF_HD void cos_sin_turn(uint32_t k, float* cosine, float* sine) {
  const uint32_t quadrant = ((k + (1u << 21)) >> 22) & 3u;
  const int32_t offset =
      static_cast<int32_t>(k) - static_cast<int32_t>(((k + (1u << 21)) >> 22) << 22);
  const float x = static_cast<float>(offset) * 3.74507035e-7f;  // 2 pi / 2^24
  const float x2 = x * x;
  float s = 2.75573164e-6f;
  s = s * x2;
  s = s - 1.98412701e-4f;
  s = s * x2;
  s = s + 8.33333377e-3f;
  s = s * x2;
  s = s - 0.166666672f;
  s = s * x2;
  s = s * x;
  s = s + x;
  float c = 2.48015876e-5f;
  c = c * x2;
  c = c - 1.38888892e-3f;
  c = c * x2;
  c = c + 4.16666679e-2f;
  c = c * x2;
  c = c - 0.5f;
  c = c * x2;
  c = c + 1.0f;
  *cosine = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
  *sine = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
}

// Four standard normals from one block (Box-Muller): words (0, 1) give normals 0 and 1, words (2,
// 3) the rest.
RF_HD void normals_from_block(const Philox4& block, float out[4]) {
  for (int half = 0; half < 2; ++half) {
    const float radius = sqrtf(-2.0f * log_uniform(block.w[2 * half] >> 8));
    float cosine, sine;
    cos_sin_turn(block.w[2 * half + 1] >> 8, &cosine, &sine);
    out[2 * half] = radius * cosine;
    out[2 * half + 1] = radius * sine;
  }
}

// The standard normal that belongs to one feature.
// In loops over features, draw whole blocks instead.
RF_HD float philox_normal(uint64_t seed, int64_t sample, int64_t feature, PhiloxDomain domain) {
  float z[4];
  normals_from_block(philox_block(seed, sample, feature >> 2, domain), z);
  return z[feature & 3];
}

}  // namespace rf
