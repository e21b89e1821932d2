// Fills the removed features of one image: stretches of replacements are made ready, then blended
// in by the mask.
#include "cpu/fill_image.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cpu/support/philox_vec.h"
#include "cpu/support/simd.h"

namespace rf {

namespace {

template <typename T>
class ImageFiller {
 public:
  ImageFiller(const ImageLayout& layout, const FillSpec& spec, FillScratch& scratch)
      : layout_(layout),
        spec_(spec),
        replacement_(reinterpret_cast<T*>(scratch.replacement)),
        expanded_(scratch.expanded) {}

  // x, out: one image. mask: its p bytes, or c * p if per
  // feature. `image` picks per-image values, `sample` seeds.
  void fill(int64_t image, int64_t sample, const T* x, const uint8_t* mask, T* out) {
    image_ = image;
    sample_ = sample;
    // Noise is drawn only where it is needed, but all is read.
    if (spec_.kind == RF_FILL_NOISE) std::fill_n(replacement_, kChunk, T{});
    other_ =
        spec_.other ? static_cast<const T*>(spec_.other) + image * layout_.features() : nullptr;
    layout_.channels_last&& layout_.c > 1 ? fill_interleaved(x, mask, out)
                                          : fill_planes(x, mask, out);
  }

 private:
  static constexpr int64_t kChunk = FillScratch::kChunk;

  // As integers, since GCC does not turn a choice between
  // bytes into a blend. Not inlined, to be vectorised alone.
  __attribute__((noinline)) static void blend(const T* x, const uint8_t* mask, const T* replacement,
                                              int64_t n, T* out) {
    using Bits = std::conditional_t<
        sizeof(T) == 8, uint64_t,
        std::conditional_t<sizeof(T) == 4, uint32_t,
                           std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
    typedef Bits Alias __attribute__((may_alias));
    const Alias *a = reinterpret_cast<const Alias*>(x),
                *b = reinterpret_cast<const Alias*>(replacement);
    Alias* o = reinterpret_cast<Alias*>(out);
    for (int64_t i = 0; i < n; ++i) {
      const Bits removed = static_cast<Bits>(-static_cast<Bits>(mask[i] != 0));
      o[i] = static_cast<Bits>((a[i] & ~removed) | (b[i] & removed));
    }
  }

  void fill_planes(const T* x, const uint8_t* mask, T* out) {
    const int64_t p = layout_.p;
    for (int64_t channel = 0; channel < layout_.c; ++channel) {
      const uint8_t* m = mask + (layout_.per_feature ? channel * p : 0);
      if (is_constant()) std::fill_n(replacement_, std::min(p, kChunk), constant(channel, x, mask));
      for (int64_t begin = 0; begin < p; begin += kChunk) {
        const int64_t size = std::min(kChunk, p - begin), feature = channel * p + begin;
        const T* replacement = replacement_;
        if (spec_.kind == RF_FILL_IMAGE) replacement = other_ + feature;
        if (spec_.kind == RF_FILL_NOISE) draw_noise<1>(feature, size, m + begin, replacement_);
        blend(x + feature, m + begin, replacement, size, out + feature);
      }
    }
  }

  // [p, c]: chunks of whole pixels, with the mask of each pixel repeated for its channels.
  void fill_interleaved(const T* x, const uint8_t* mask, T* out) {
    const int64_t c = layout_.c, p = layout_.p;
    const int64_t pixels = std::max<int64_t>(1, kChunk / c);
    if (c > kChunk) return fill_wide_pixels(x, mask, out);
    if (is_constant()) {
      for (int64_t channel = 0; channel < c; ++channel) {
        const T value = constant(channel, x, mask);
        for (int64_t i = 0; i < pixels; ++i) replacement_[i * c + channel] = value;
      }
    }
    for (int64_t begin = 0; begin < p; begin += pixels) {
      const int64_t count = std::min(pixels, p - begin), first = begin * c;
      const uint8_t* m = mask + first;
      if (!layout_.per_feature) {
        repeat(mask + begin, count, c);
        m = expanded_;
      }
      const T* replacement = replacement_;
      if (spec_.kind == RF_FILL_IMAGE) replacement = other_ + first;
      for (int64_t channel = 0; spec_.kind == RF_FILL_NOISE && channel < c; ++channel) {
        const int64_t feature = channel * p + begin;
        if (c == 3) {
          draw_noise<3>(feature, count, m + channel, replacement_ + channel);
        } else {
          draw_noise<0>(feature, count, m + channel, replacement_ + channel, c);
        }
      }
      blend(x + first, m, replacement, count * c, out + first);
    }
  }

  void repeat(const uint8_t* mask, int64_t count, int64_t c) {
    int64_t i = 0;
    if (c == 3) {
      using Bytes = vector_t<uint8_t, 16>;
      for (; i + 16 <= count; i += 16) {
        Bytes m;
        std::memcpy(&m, mask + i, 16);
        const Bytes triples[3] = {
            shuffle<0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5>(m, m),
            shuffle<5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10>(m, m),
            shuffle<10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15>(m, m)};
        std::memcpy(expanded_ + 3 * i, triples, 48);
      }
    }
    for (; i < count; ++i) {
      for (int64_t channel = 0; channel < c; ++channel) expanded_[i * c + channel] = mask[i];
    }
  }

  // Thousands of channels last: no chunk holds a pixel, so feature by feature.
  void fill_wide_pixels(const T* x, const uint8_t* mask, T* out) {
    for (int64_t channel = 0; channel < layout_.c; ++channel) {
      const T value = is_constant() ? constant(channel, x, mask) : T{};
      for (int64_t pixel = 0; pixel < layout_.p; ++pixel) {
        const int64_t i = pixel * layout_.c + channel;
        const bool removed = mask[layout_.per_feature ? i : pixel] != 0;
        out[i] = !removed                      ? x[i]
                 : spec_.kind == RF_FILL_IMAGE ? other_[i]
                 : spec_.kind == RF_FILL_NOISE ? noise(channel * layout_.p + pixel)
                                               : value;
      }
    }
  }

  bool is_constant() const { return spec_.kind != RF_FILL_IMAGE && spec_.kind != RF_FILL_NOISE; }

  T constant(int64_t channel, const T* x, const uint8_t* mask) const {
    if (spec_.kind == RF_FILL_VALUES) {
      return to_pixel<T>(spec_.values[(spec_.values_per_image ? image_ * layout_.c : 0) + channel]);
    }
    return to_pixel<T>(mean(channel, x, mask, spec_.kind == RF_FILL_KEPT_MEAN));
  }

  double mean(int64_t channel, const T* x, const uint8_t* mask, bool only_kept) const {
    const int64_t p = layout_.p;
    const int64_t start = layout_.channels_last ? channel : channel * p,
                  step = layout_.channels_last ? layout_.c : 1;
    const uint8_t* m = mask + (layout_.per_feature ? start : 0);
    const int64_t mask_step = layout_.per_feature ? step : 1;
    double sums[kMeanLanes] = {};
    int64_t kept = 0;
    for (int64_t begin = 0; begin < p; begin += kMeanLanes) {
      const int64_t size = std::min<int64_t>(kMeanLanes, p - begin);
      for (int64_t lane = 0; lane < size; ++lane) {
        const int64_t pixel = begin + lane;
        const bool counts = !only_kept || !m[pixel * mask_step];
        sums[lane] += counts ? static_cast<double>(load(x[start + pixel * step])) : 0.0;
        kept += counts;
      }
    }
    if (kept == 0) return p > 0 ? mean(channel, x, mask, false) : 0.0;
    for (int half = kMeanLanes / 2; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    return sums[0] / static_cast<double>(kept);
  }

  T noise(int64_t feature) const {
    return noise_pixel<T>(spec_, philox_normal(spec_.seed, sample_, feature, kDomainNoiseFill));
  }

  // Replacements of `size` features in a row, which lie kStep (0: `step`) apart as their mask does.
  // Blocks are drawn eight at a time, where one of their features is removed.
  template <int kStep>
  void draw_noise(int64_t feature, int64_t size, const uint8_t* mask, T* out, int64_t step = 0) {
    const FillSpec spec = spec_;  // stores might change it, for all that is known
    if (kStep != 0) step = kStep;
    const int64_t end_block = (feature + size + 3) >> 2;
    for (int64_t block = feature >> 2; block < end_block; block += kPhiloxNormals / 4) {
      const int64_t first = 4 * block - feature, begin = std::max<int64_t>(0, first),
                    end = std::min(size, first + kPhiloxNormals);
      bool any = false;
      for (int64_t k = begin; k < end; ++k) any |= mask[k * step] != 0;
      if (!any) continue;
      alignas(32) float z[kPhiloxNormals];
      philox_normals(spec.seed, sample_, block, kDomainNoiseFill, z);
      for (int64_t k = begin; k < end; ++k) out[k * step] = noise_pixel<T>(spec, z[k - first]);
    }
  }

  const ImageLayout& layout_;
  const FillSpec& spec_;
  int64_t image_ = 0, sample_ = 0;
  const T* other_ = nullptr;
  T* const replacement_;
  uint8_t* const expanded_;
};

}  // namespace

void fill_image(rf_dtype dtype, const ImageLayout& layout, const FillSpec& spec, int64_t image,
                int64_t sample, const void* x, const uint8_t* mask, void* out,
                FillScratch& scratch) {
  const int64_t offset = image * layout.features();
  dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ImageFiller<T>(layout, spec, scratch)
        .fill(image, sample, static_cast<const T*>(x) + offset, mask,
              static_cast<T*>(out) + offset);
  });
}

}  // namespace rf
