// The rectangle of block_random: area as close to t * h * w as its shape allows, drawn shape, uniform position.
// Only exactly rounded operations, so every backend draws the same one.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/philox.h"
#include "common/qualifiers.h"

namespace rf {

struct Rectangle {
  int64_t top, left, height, width;
};

// The four words of one Philox block decide. Relative to the image's own shape, the height is stretched by r and the
// width by 1 / r, where r^2 = 1 + u or 1 / (1 + u), each half of the time, u uniform in [0, 1): aspect ratios reach
// from half to twice that of the image. A side longer than the image is cut and the other grows to match. Then of
// the heights within 1/8 (at least 2 pixels) of the drawn one, the one whose best width comes closest to the area
// is taken; of equals the closest to the drawn height, then the smaller.
RF_HD Rectangle random_block(int64_t h, int64_t w, double t, uint64_t seed, int64_t sample) {
  const double rows = static_cast<double>(h), columns = static_cast<double>(w), area = t * rows * columns;
  if (area < 0.5) return {0, 0, 0, 0};
  const Philox4 words = philox_block(seed, sample, 0, kDomainBlockRandom);
  const double stretch = 1.0 + static_cast<double>(uniform_from_word(words.w[0]));
  const double ratio = (words.w[3] & 1u) ? stretch : 1.0 / stretch;
  double drawn = rows * sqrt(t * ratio);
  const double shortest = area / columns;  // the width cannot exceed the image
  drawn = drawn > rows ? rows : drawn;
  drawn = drawn < shortest ? shortest : drawn;
  drawn = drawn < 1.0 ? 1.0 : drawn;
  const double reach = drawn * 0.125 > 2.0 ? drawn * 0.125 : 2.0;
  int64_t first = static_cast<int64_t>(ceil(drawn - reach)), last = static_cast<int64_t>(floor(drawn + reach));
  first = first < 1 ? 1 : first;
  last = last > h ? h : last;
  int64_t height = 0, width = 0;
  double best_error = 0.0, best_distance = 0.0;
  for (int64_t candidate = first; candidate <= last; ++candidate) {
    int64_t wide = static_cast<int64_t>(floor(area / static_cast<double>(candidate) + 0.5));
    wide = wide < 1 ? 1 : wide > w ? w : wide;
    const double error = fabs(static_cast<double>(candidate) * static_cast<double>(wide) - area);
    const double distance = fabs(static_cast<double>(candidate) - drawn);
    if (height == 0 || error < best_error || (error == best_error && distance < best_distance)) {
      height = candidate;
      width = wide;
      best_error = error;
      best_distance = distance;
    }
  }
  const int64_t tops = h - height + 1, lefts = w - width + 1;
  return {static_cast<int64_t>((static_cast<uint64_t>(words.w[1]) * static_cast<uint64_t>(tops)) >> 32),
          static_cast<int64_t>((static_cast<uint64_t>(words.w[2]) * static_cast<uint64_t>(lefts)) >> 32), height,
          width};
}

}  // namespace rf
