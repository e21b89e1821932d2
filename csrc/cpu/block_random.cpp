// Masks of one random rectangle per image.
#include <cstring>

#include "common/random_block.h"
#include "common/status.h"
#include "cpu/support/parallel.h"

extern "C" rf_status rf_block_random(uint8_t* mask, int64_t n, int64_t h, int64_t w, double drop,
                                     uint64_t seed, const int64_t* index, rf_stream) {
  if (!(drop >= 0.0 && drop <= 1.0))
    return rf::fail(RF_INVALID_ARGUMENT, "drop must be in [0, 1], got %g", drop);
  if (n <= 0 || h <= 0 || w <= 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("block_random", {mask})) return bad;
  rf::parallel_for(n, 1 + 65536 / (h * w), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      uint8_t* image = mask + i * h * w;
      std::memset(image, 0, h * w);
      const rf::Rectangle r = rf::random_block(h, w, drop, seed, index ? index[i] : i);
      for (int64_t y = r.top; y < r.top + r.height; ++y)
        std::memset(image + y * w + r.left, 1, r.width);
    }
  });
  return RF_OK;
}
