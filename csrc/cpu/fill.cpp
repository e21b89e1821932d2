// Replaces the masked features of images.
#include "common/parallel.h"
#include "cpu/fill_row.h"

extern "C" rf_status rf_fill(const void* x, const uint8_t* mask, void* out, rf_dtype dtype,
                             int64_t n, int64_t c, int64_t p, int channels_last, int per_feature,
                             rf_fill_kind kind, const double* values, int values_per_image,
                             const void* other, double noise_mean, double noise_std, uint64_t seed,
                             const int64_t* index, rf_stream) {
  const rf::ImageLayout layout{n, c, p, channels_last != 0, per_feature != 0};
  const rf::FillSpec spec{kind, values, values_per_image != 0, other, noise_mean, noise_std, seed};
  if (const rf_status bad = rf::check_fill(layout, spec)) return bad;
  const int64_t features = layout.features();
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    rf::parallel_for(
        n, 1 + 65536 / std::max<int64_t>(features, 1), [&](int64_t begin, int64_t end, int) {
          rf::ImageFiller<T> filler(layout, spec);
          for (int64_t i = begin; i < end; ++i) {
            filler.fill(i, index ? index[i] : i, static_cast<const T*>(x) + i * features,
                        mask + i * layout.mask_size(), static_cast<T*>(out) + i * features);
          }
        });
  });
  return known ? RF_OK : rf::fail_dtype("fill", dtype);
}
