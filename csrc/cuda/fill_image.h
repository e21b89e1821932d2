// Filling one image by one thread block of kMeanLanes threads, whatever says which features are
// removed: removed(i) for the feature i of the mask (a pixel, or a feature if per_feature).
#pragma once

#include <cstdint>

#include "common/fill.h"
#include "cuda/support/launch.h"

namespace rf {

struct FillShared {
  double sums[kMeanLanes];
  unsigned long long counts[kMeanLanes];
};

// The mean of one channel over the pixels that stay (over all, if none stays), or over all.
template <typename T, typename Removed>
__device__ double channel_mean(FillShared& shared, const ImageLayout& layout, const T* x,
                               int64_t channel, bool only_kept, const Removed& removed) {
  const int64_t start = layout.channels_last ? channel : channel * layout.p;
  const int64_t step = layout.channels_last ? layout.c : 1;
  for (;;) {
    double sum = 0.0;
    unsigned long long kept = 0;
#pragma unroll 2  // more, and registers are spilled
    for (int64_t pixel = threadIdx.x; pixel < layout.p; pixel += kMeanLanes) {
      const int64_t i = start + pixel * step;
      const bool counts = !only_kept || !removed(layout.per_feature ? i : pixel);
      sum += counts ? static_cast<double>(load(x[i])) : 0.0;
      kept += counts;
    }
    __syncthreads();  // of the previous use
    shared.sums[threadIdx.x] = sum;
    shared.counts[threadIdx.x] = kept;
    __syncthreads();
    for (int half = kMeanLanes / 2; half > 0; half /= 2) {
      if (static_cast<int>(threadIdx.x) < half) {
        shared.sums[threadIdx.x] += shared.sums[threadIdx.x + half];
        shared.counts[threadIdx.x] += shared.counts[threadIdx.x + half];
      }
      __syncthreads();
    }
    const double total = shared.sums[0];
    const unsigned long long count = shared.counts[0];
    if (count > 0) return total / static_cast<double>(count);
    if (!only_kept) return 0.0;
    only_kept = false;
  }
}

// The kinds of fill that a kernel is compiled for: with fewer it needs fewer registers.
enum class Fills { kAll, kMeans, kOthers };

// out = x with removed features replaced, for pixels first, first + step, ... of every channel.
template <Fills kFills = Fills::kAll, typename T, typename Removed>
__device__ void fill_image(FillShared& shared, const ImageLayout& layout, const FillSpec& spec,
                           int64_t image, int64_t sample, const T* x, T* out, int64_t first,
                           int64_t step, const Removed& removed) {
  constexpr bool kWithMeans = kFills != Fills::kOthers, kWithOthers = kFills != Fills::kMeans;
  const T* other = static_cast<const T*>(spec.other) + (spec.other ? image * layout.features() : 0);
  for (int64_t channel = 0; channel < layout.c; ++channel) {
    T value{};
    if (kWithOthers && spec.kind == RF_FILL_VALUES) {
      value = to_pixel<T>(spec.values[(spec.values_per_image ? image * layout.c : 0) + channel]);
    } else if (kWithMeans && (spec.kind == RF_FILL_KEPT_MEAN || spec.kind == RF_FILL_IMAGE_MEAN)) {
      value = to_pixel<T>(
          channel_mean(shared, layout, x, channel, spec.kind == RF_FILL_KEPT_MEAN, removed));
    }
    for (int64_t pixel = first; pixel < layout.p; pixel += step) {
      const int64_t i =
          layout.channels_last ? pixel * layout.c + channel : channel * layout.p + pixel;
      T v = x[i];
      if (removed(layout.per_feature ? i : pixel)) {
        if (kWithOthers && spec.kind == RF_FILL_IMAGE) {
          v = other[i];
        } else if (kWithOthers && spec.kind == RF_FILL_NOISE) {
          v = noise_pixel<T>(
              spec, philox_normal(spec.seed, sample, channel * layout.p + pixel, kDomainNoiseFill));
        } else {
          v = value;
        }
      }
      out[i] = v;
    }
  }
}

}  // namespace rf
