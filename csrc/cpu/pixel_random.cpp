// Uniform random maps: one Philox word per feature.
#include "common/status.h"
#include "cpu/selection/row_removal.h"
#include "cpu/support/parallel.h"
#include "cpu/support/philox_vec.h"

extern "C" rf_status rf_pixel_random(float* out, int64_t n, int64_t f, uint64_t seed,
                                     const int64_t* index, rf_stream) {
  if (n <= 0 || f <= 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("pixel_random", {out})) return bad;
  rf::parallel_for(n, rf::row_grain(f), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t first = 0; first < f; first += rf::kPhiloxWords) {
        alignas(64) uint32_t words[rf::kPhiloxWords];
        rf::philox_words(seed, index ? index[i] : i, first >> 2, rf::kDomainPixelRandom, words);
        const int64_t count = std::min<int64_t>(rf::kPhiloxWords, f - first);
        float* to = out + i * f + first;
        for (int64_t w = 0; w < count; ++w) to[w] = rf::uniform_from_word(words[w]);
      }
    }
  });
  return RF_OK;
}
