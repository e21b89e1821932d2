// Replaces the masked features of images.
#include "cpu/fill_image.h"
#include "cpu/support/parallel.h"

extern "C" rf_status rf_fill(const void* x, const uint8_t* mask, void* out, rf_dtype dtype,
                             int64_t n, int64_t c, int64_t p, rf_layout layout, int per_feature,
                             rf_fill_kind kind, const double* values, int values_per_image,
                             const void* other, double noise_mean, double noise_std, uint64_t seed,
                             const int64_t* index, rf_stream) {
  const rf::ImageLayout images{n, c, p, layout == RF_NHWC, per_feature != 0};
  const rf::FillSpec spec{kind, values, values_per_image != 0, other, noise_mean, noise_std, seed};
  if (const rf_status bad = rf::check_fill(images, spec)) return bad;
  if (!rf::is_dtype(dtype)) return rf::fail_dtype("fill", dtype);
  if (n == 0 || images.features() == 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("fill", {x, mask, out})) return bad;
  const int64_t grain = 1 + 65536 / std::max<int64_t>(images.features(), 1);
  rf::parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
    rf::FillScratch scratch;
    for (int64_t i = begin; i < end; ++i) {
      rf::fill_image(dtype, images, spec, i, index ? index[i] : i, x, mask + i * images.mask_size(),
                     out, scratch);
    }
  });
  return RF_OK;
}
