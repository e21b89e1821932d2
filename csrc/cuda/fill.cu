// Replaces the masked features of images. Several blocks share an image, except where they need its
// mean: there one block takes it all. Reads image and mask (once per channel), writes the image.
#include <algorithm>

#include "cuda/fill_image.h"
#include "cuda/support/launch.h"

namespace {

constexpr int64_t kPixelsPerBlock = 4 * rf::kMeanLanes, kMaxGrid = 1 << 20;

template <typename T>
__global__ void __launch_bounds__(rf::kMeanLanes)
    fill_kernel(const T* __restrict__ x,           // [n, c, p] or [n, p, c]
                const uint8_t* __restrict__ mask,  // [n, p] or as x
                T* __restrict__ out, rf::ImageLayout layout, rf::FillSpec spec, int64_t parts,
                const int64_t* __restrict__ index) {  // [n] or null
  RF_SHARED(rf::FillShared, shared, [1]);
  for (int64_t item = blockIdx.x; item < layout.n * parts; item += gridDim.x) {
    const int64_t i = item / parts, part = item % parts;
    const uint8_t* m = mask + i * layout.mask_size();
    const int64_t offset = i * layout.features();
    rf::fill_image(shared[0], layout, spec, i, index ? index[i] : i, x + offset, out + offset,
                   part * rf::kMeanLanes + threadIdx.x, parts * rf::kMeanLanes,
                   [m](int64_t k) { return m[k] != 0; });
  }
}

}  // namespace

extern "C" rf_status rf_fill(const void* x, const uint8_t* mask, void* out, rf_dtype dtype,
                             int64_t n, int64_t c, int64_t p, rf_layout layout, int per_feature,
                             rf_fill_kind kind, const double* values, int values_per_image,
                             const void* other, double noise_mean, double noise_std, uint64_t seed,
                             const int64_t* index, rf_stream stream) {
  const rf::ImageLayout images{n, c, p, layout == RF_NHWC, per_feature != 0};
  const rf::FillSpec spec{kind, values, values_per_image != 0, other, noise_mean, noise_std, seed};
  if (const rf_status bad = rf::check_fill(images, spec)) return bad;
  if (n == 0 || images.features() == 0) return RF_OK;
  const bool needs_mean = kind == RF_FILL_KEPT_MEAN || kind == RF_FILL_IMAGE_MEAN;
  const int64_t parts = needs_mean ? 1 : (p + kPixelsPerBlock - 1) / kPixelsPerBlock;
  const unsigned grid = static_cast<unsigned>(std::min(n * parts, kMaxGrid));
  rf_status status = RF_OK;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = rf::launch(fill_kernel<T>, grid, rf::kMeanLanes, 0, stream, static_cast<const T*>(x),
                        mask, static_cast<T*>(out), images, spec, parts, index);
  });
  return known ? status : rf::fail_dtype("fill", dtype);
}
