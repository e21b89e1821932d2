// Where a sample's crop starts and whether it is flipped:
// the one source of this randomness on every backend.
#pragma once

#include <cstdint>

#include "common/philox.h"

namespace rf {

struct Placement {
  int64_t y, x;  // source row and column (unpadded coordinates) of the crop's first pixel
  bool flip;
};

// Uniform in [0, range]: the high word of a 32 x 32 bit product,
// so no modulo and no bias worth a retry.
RF_HD int64_t pick(uint32_t word, int64_t range) {
  return static_cast<int64_t>((static_cast<uint64_t>(word) * static_cast<uint64_t>(range + 1)) >>
                              32);
}

// range_y, range_x: how far the crop can move, padded size minus crop size.
RF_HD Placement place_crop(uint64_t seed, uint64_t epoch, int64_t id, int64_t range_y,
                           int64_t range_x, int64_t pad, bool random_crop, bool random_flip) {
  Placement p = {range_y / 2 - pad, range_x / 2 - pad, false};
  if (!random_crop && !random_flip) return p;
  const Philox4 words = philox_block(seed, id, static_cast<int64_t>(epoch), kDomainAugment);
  if (random_crop) {
    p.y = pick(words.w[0], range_y) - pad;
    p.x = pick(words.w[1], range_x) - pad;
  }
  p.flip = random_flip && (words.w[2] >> 31) != 0;
  return p;
}

}  // namespace rf
