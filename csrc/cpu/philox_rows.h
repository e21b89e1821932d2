// Runs of consecutive Philox features, many blocks at a time so that the compiler vectorises over
// blocks. Bit for bit the numbers of philox_normal / uniform_from_word(philox_word(...)).
#pragma once

#include <cstdint>

#include "common/philox.h"

namespace rf {

constexpr int64_t kPhiloxRowSlack = 68;  // extra floats that the buffer of philox_row needs

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
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < kBatch; ++i) {
        const uint32_t hi0 = philox_mulhi(0xD2511F53u, w0[i]), lo0 = 0xD2511F53u * w0[i];
        const uint32_t hi1 = philox_mulhi(0xCD9E8D57u, w2[i]), lo1 = 0xCD9E8D57u * w2[i];
        const uint32_t c1 = w1[i], c3 = w3[i];
        w0[i] = hi1 ^ c1 ^ k0;
        w1[i] = lo1;
        w2[i] = hi0 ^ c3 ^ k1;
        w3[i] = lo0;
      }
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
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
