// What replaces removed features, shared by every backend.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "common/dtype.h"
#include "common/philox.h"
#include "common/qualifiers.h"
#include "common/status.h"
#include "include/roarfast.h"

namespace rf {

// n images of c channels and p pixels, [n, c, p] or [n, p, c]; masks [n, p] or as the images.
struct ImageLayout {
  int64_t n, c, p;
  bool channels_last, per_feature;

  RF_HD int64_t features() const { return c * p; }
  RF_HD int64_t mask_size() const { return per_feature ? c * p : p; }
};

struct FillSpec {
  rf_fill_kind kind;
  const double* values;  // [c] or [n, c]
  bool values_per_image;
  const void* other;
  double noise_mean, noise_std;
  uint64_t seed;
};

// Means are sums over this many interleaved lanes (pixel % kMeanLanes), added up as a binary tree:
// the order, and so every bit, is the same on a CPU and in a thread block of that size.
constexpr int kMeanLanes = 256;

// Nearest value of an image dtype: uint8 rounds half to even and clips.
template <typename T, typename V>
RF_HD T to_pixel(V v) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    const V rounded = rint(v);
    return static_cast<uint8_t>(rounded > V(0) ? (rounded < V(255) ? rounded : V(255)) : V(0));
  } else {
    return store<T>(static_cast<compute_t<T>>(v));
  }
}

// The noise of one feature (channel * p + pixel, whatever the layout)
// from its standard normal number.
template <typename T>
RF_HD T noise_pixel(const FillSpec& spec, float normal) {
  using V = compute_t<T>;
  const V step = static_cast<V>(spec.noise_std) * static_cast<V>(normal);
  return to_pixel<T>(static_cast<V>(spec.noise_mean) + step);
}

inline rf_status check_fill(const ImageLayout& layout, const FillSpec& spec) {
  if (layout.n < 0 || layout.c < 0 || layout.p < 0) {
    return fail(RF_INVALID_ARGUMENT, "sizes must be >= 0, got n %lld, c %lld, p %lld",
                static_cast<long long>(layout.n), static_cast<long long>(layout.c),
                static_cast<long long>(layout.p));
  }
  const bool empty = layout.n == 0 || layout.features() == 0;  // empty arrays may be null
  if (spec.kind == RF_FILL_VALUES && !spec.values && !empty)
    return fail(RF_INVALID_ARGUMENT, "fill values are missing");
  if (spec.kind == RF_FILL_IMAGE && !spec.other && !empty)
    return fail(RF_INVALID_ARGUMENT, "the image to fill from is missing");
  if (spec.kind < RF_FILL_VALUES || spec.kind > RF_FILL_NOISE) {
    return fail(RF_INVALID_ARGUMENT, "unknown fill kind %d", static_cast<int>(spec.kind));
  }
  return RF_OK;
}

}  // namespace rf
