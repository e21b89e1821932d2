// The rectangle of block_random: area as close to t * h * w as its shape allows, drawn shape,
// uniform position. Only exactly rounded operations, so every backend draws the same one.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/philox.h"
#include "common/qualifiers.h"

namespace rf {

struct Rectangle {
  int64_t top, left, height, width;
};

// Keeps the better of a candidate and the best so far: nearer to the area, then to the drawn
// height, then smaller.
struct BlockSearch {
  double area, drawn;
  int64_t height, width;
  double error, distance;

  RF_HD void consider(int64_t h, int64_t w) {
    const double e = fabs(static_cast<double>(h) * static_cast<double>(w) - area);
    const double d = fabs(static_cast<double>(h) - drawn);
    const bool better =
        height == 0 || e < error || (e == error && (d < distance || (d == distance && h < height)));
    if (!better) return;
    height = h;
    width = w;
    error = e;
    distance = d;
  }
};

RF_HD int64_t nearest_side(double side, int64_t longest) {
  const int64_t rounded = static_cast<int64_t>(floor(side + 0.5));
  return rounded < 1 ? 1 : rounded > longest ? longest : rounded;
}

// The four words of one Philox block decide. Relative to the image's own shape, the height is
// stretched by r and the width by 1 / r, where r^2 = 1 + u or 1 / (1 + u), each half of the time, u
// uniform in [0, 1): aspect ratios reach from half to twice that of the image. A side that would
// leave the image (or be shorter than a pixel) is cut and the other follows. Of the whole sides
// next to those drawn, each with the best other side, the pair nearest to the area is taken.
RF_HD Rectangle random_block(int64_t h, int64_t w, double t, uint64_t seed, int64_t sample) {
  const double rows = static_cast<double>(h), columns = static_cast<double>(w),
               area = t * rows * columns;
  if (area < 0.5) return {0, 0, 0, 0};
  const Philox4 words = philox_block(seed, sample, 0, kDomainBlockRandom);
  const double stretch = 1.0 + static_cast<double>(uniform_from_word(words.w[0]));
  const double ratio = (words.w[3] & 1u) ? stretch : 1.0 / stretch;
  double drawn = rows * sqrt(t * ratio);
  const double shortest = area / columns;  // the width cannot exceed the image
  drawn = drawn > rows ? rows : drawn;
  drawn = drawn > area ? area : drawn;  // the width is at least one pixel
  drawn = drawn < shortest ? shortest : drawn;
  drawn = drawn < 1.0 ? 1.0 : drawn;
  BlockSearch search{area, drawn, 0, 0, 0.0, 0.0};
  for (int up = 0; up < 2; ++up) {
    const int64_t tall = nearest_side(up ? ceil(drawn) : floor(drawn), h);
    search.consider(tall, nearest_side(area / static_cast<double>(tall), w));
    const int64_t wide = nearest_side(up ? ceil(area / drawn) : floor(area / drawn), w);
    search.consider(nearest_side(area / static_cast<double>(wide), h), wide);
  }
  const int64_t height = search.height, width = search.width;
  const int64_t tops = h - height + 1, lefts = w - width + 1;
  return {
      static_cast<int64_t>((static_cast<uint64_t>(words.w[1]) * static_cast<uint64_t>(tops)) >> 32),
      static_cast<int64_t>((static_cast<uint64_t>(words.w[2]) * static_cast<uint64_t>(lefts)) >>
                           32),
      height, width};
}

}  // namespace rf
