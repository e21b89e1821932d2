// Replaces the masked features of images. Reads image and mask, writes the image.
//  - constants, images, noise: several blocks share an image. Planes: a thread takes four pixels of
//    every channel, so that the mask is read once. Pixels: it takes four features in a row. Both in
//    one load and store of four values, where rows are whole fours and aligned;
//  - anything else, and means, which need a block for the whole image: feature by feature.
#include <algorithm>

#include "cuda/fill_image.h"
#include "cuda/support/launch.h"
#include "cuda/support/vectors.h"

namespace {

constexpr int kThreads = rf::kMeanLanes;
constexpr int64_t kPixelsPerBlock = 4 * kThreads, kMaxGrid = 1 << 20;

// Blocks per multiprocessor that leave a thread registers enough (48 for five, 64 for four): left
// to itself, ptxas aims higher and spills on sm_90.
template <typename T, rf::Fills kFills>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 8 ? 4 : 5)
    fill_kernel(const T* __restrict__ x,           // [n, c, p] or [n, p, c]
                const uint8_t* __restrict__ mask,  // [n, p] or as x
                T* __restrict__ out, rf::ImageLayout layout, rf::FillSpec spec, uint32_t parts,
                const int64_t* __restrict__ index) {  // [n] or null
  RF_SHARED(rf::FillShared, shared, [1]);
  int64_t i = blockIdx.x / parts;
  uint32_t part = blockIdx.x - static_cast<uint32_t>(i) * parts;
  while (i < layout.n) {
    const uint8_t* m = mask + i * layout.mask_size();
    const int64_t offset = i * layout.features();
    rf::fill_image<kFills>(shared[0], layout, spec, i, index ? index[i] : i, x + offset,
                           out + offset, int64_t{part} * kThreads + threadIdx.x,
                           int64_t{parts} * kThreads, [m](int64_t k) { return m[k] != 0; });
    // The block's next item, without a division of 64 bits and with few registers.
    const uint32_t images_on = gridDim.x / parts;
    i += images_on, part += gridDim.x - images_on * parts;
    if (part >= parts) ++i, part -= parts;
  }
}

// The four values that replace those of a channel from `pixel` on (a multiple
// of four).
template <typename T>
__device__ __forceinline__ rf::Four<T> replacement(const rf::FillSpec& spec, int64_t image,
                                                   int64_t sample, uint32_t c, uint32_t channel,
                                                   uint32_t p, uint32_t pixel, const T* other) {
  rf::Four<T> four;
  if (spec.kind == RF_FILL_IMAGE) {
    four = *reinterpret_cast<const rf::Four<T>*>(other);
  } else if (spec.kind == RF_FILL_NOISE) {
    float normals[4];
    const int64_t feature = static_cast<int64_t>(channel) * p + pixel;  // p is whole fours
    rf::normals_from_block(rf::philox_block(spec.seed, sample, feature >> 2, rf::kDomainNoiseFill),
                           normals);
#pragma unroll
    for (int k = 0; k < 4; ++k) four.v[k] = rf::noise_pixel<T>(spec, normals[k]);
  } else {
    const T value = rf::to_pixel<T>(spec.values[(spec.values_per_image ? image * c : 0) + channel]);
#pragma unroll
    for (int k = 0; k < 4; ++k) four.v[k] = value;
  }
  return four;
}

// One thread per four pixels; images in planes.
template <typename T>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 1 || sizeof(T) == 8 ? 4 : 5)
    fill_planes_kernel(const T* __restrict__ x,           // [n, c, p]
                       const uint8_t* __restrict__ mask,  // [n, p]
                       T* __restrict__ out, int64_t n, uint32_t c, uint32_t p, rf::FillSpec spec,
                       uint32_t parts,
                       const int64_t* __restrict__ index) {  // [n] or null
  for (int64_t item = blockIdx.x; item < n * parts; item += gridDim.x) {
    const int64_t i = rf::quotient(item, parts);
    const uint32_t part = static_cast<uint32_t>(item - i * parts);
    const uint32_t pixel = 4 * (part * kThreads + threadIdx.x);
    if (pixel >= p) continue;
    const rf::Four<uint8_t> removed =
        *reinterpret_cast<const rf::Four<uint8_t>*>(mask + i * p + pixel);
    const bool any = removed.v[0] | removed.v[1] | removed.v[2] | removed.v[3];
    const int64_t sample = index ? index[i] : i, first = i * c * p + pixel;
    for (uint32_t channel = 0; channel < c; ++channel) {
      const int64_t at = first + static_cast<int64_t>(channel) * p;
      rf::Four<T> values = *reinterpret_cast<const rf::Four<T>*>(x + at);
      if (any) {
        const rf::Four<T> by =
            replacement<T>(spec, i, sample, c, channel, p, pixel,
                           spec.other ? static_cast<const T*>(spec.other) + at : nullptr);
#pragma unroll
        for (int k = 0; k < 4; ++k) values.v[k] = removed.v[k] ? by.v[k] : values.v[k];
      }
      *reinterpret_cast<rf::Four<T>*>(out + at) = values;
    }
  }
}

// One thread per four features; channels of a pixel side by side. Constants and
// images only.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    fill_pixels_kernel(const T* __restrict__ x,           // [n, p, c]
                       const uint8_t* __restrict__ mask,  // [n, p]
                       T* __restrict__ out, int64_t n, uint32_t c, uint32_t p, rf::FillSpec spec,
                       uint32_t parts) {
  const uint32_t features = c * p;
  for (int64_t item = blockIdx.x; item < n * parts; item += gridDim.x) {
    const int64_t i = rf::quotient(item, parts);
    const uint32_t part = static_cast<uint32_t>(item - i * parts);
    const uint32_t feature = 4 * (part * kThreads + threadIdx.x);
    if (feature >= features) continue;
    const int64_t at = i * features + feature;
    const double* constants = spec.values + (spec.values_per_image ? i * c : 0);
    const T* other = static_cast<const T*>(spec.other);
    rf::Four<T> values = *reinterpret_cast<const rf::Four<T>*>(x + at);
    uint32_t pixel = feature / c, channel = feature - pixel * c;
    bool removed = mask[i * p + pixel] != 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (removed) {
        values.v[k] = other ? other[at + k] : rf::to_pixel<T>(constants[channel]);
      }
      if (k < 3 && ++channel == c) {
        channel = 0;
        removed = mask[i * p + ++pixel] != 0;
      }
    }
    *reinterpret_cast<rf::Four<T>*>(out + at) = values;
  }
}

// Whether an image is whole fours and small enough for 32-bit positions.
template <typename T>
bool in_fours(const rf::ImageLayout& layout, const rf::FillSpec& spec, const T* x,
              const uint8_t* mask, const T* out) {
  const bool means = spec.kind == RF_FILL_KEPT_MEAN || spec.kind == RF_FILL_IMAGE_MEAN;
  const bool noise_by_pixels = spec.kind == RF_FILL_NOISE && layout.channels_last;
  const int64_t whole = layout.channels_last ? layout.features() : layout.p;
  return !means && !noise_by_pixels && !layout.per_feature && whole % 4 == 0 &&
         layout.features() < (int64_t{1} << 31) && rf::is_aligned_for_fours(x) &&
         rf::is_aligned_for_fours(out) &&
         rf::is_aligned_for_fours(static_cast<const T*>(spec.other)) &&
         (layout.channels_last || rf::is_aligned_for_fours(mask));
}

template <typename T>
rf_status run(const T* x, const uint8_t* mask, T* out, const rf::ImageLayout& layout,
              const rf::FillSpec& spec, const int64_t* index, rf_stream stream) {
  const auto grid = [&](int64_t parts) {
    return static_cast<unsigned>(std::min(layout.n * parts, kMaxGrid));
  };
  if (in_fours(layout, spec, x, mask, out)) {
    const int64_t fours = (layout.channels_last ? layout.features() : layout.p) / 4;
    const int64_t parts = (fours + kThreads - 1) / kThreads;
    if (layout.channels_last) {
      return rf::launch(fill_pixels_kernel<T>, grid(parts), kThreads, 0, stream, x, mask, out,
                        layout.n, layout.c, layout.p, spec, parts);
    }
    return rf::launch(fill_planes_kernel<T>, grid(parts), kThreads, 0, stream, x, mask, out,
                      layout.n, layout.c, layout.p, spec, parts, index);
  }
  const bool means = spec.kind == RF_FILL_KEPT_MEAN || spec.kind == RF_FILL_IMAGE_MEAN;
  const int64_t parts =
      means ? 1 : std::min((layout.p + kPixelsPerBlock - 1) / kPixelsPerBlock, kMaxGrid);
  const auto kernel =
      means ? fill_kernel<T, rf::Fills::kMeans> : fill_kernel<T, rf::Fills::kOthers>;
  return rf::launch(kernel, grid(parts), kThreads, 0, stream, x, mask, out, layout, spec, parts,
                    index);
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
  if (const rf_status bad = rf::check_not_null("fill", {x, mask, out})) return bad;
  rf_status status = RF_OK;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = run(static_cast<const T*>(x), mask, static_cast<T*>(out), images, spec, index, stream);
  });
  return known ? status : rf::fail_dtype("fill", dtype);
}
