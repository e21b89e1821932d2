// The crop of random size and shape of rf_gather_batch_resized, and the taps that resample it: the
// one source of both on every backend. Only exactly rounded operations, so every backend agrees
// with roarfast/reference/gather_batch.py to the bit.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/augment.h"
#include "common/gather_batch_check.h"
#include "common/status.h"

namespace rf {

constexpr int64_t kMaxResizedSide = 16384;  // tap positions then fit 32 bits
constexpr int kBoxAttempts = 10;            // as torchvision's RandomResizedCrop

// Shares of the area and ratios of width to height that a crop may have.
struct BoxRange {
  double scale_low, scale_high, ratio_low, ratio_high, log_ratio;  // log(ratio_high / ratio_low)
};

struct Box {
  int y, x, h, w;
  bool flip;
};

// e^t for t in [0, 16): the series at t / 64, squared six times.
RF_HD double exp_of(double t) {
  const double x = t / 64.0;
  double p = 1.0;
  for (int k = 11; k > 0; --k) p = p * x / k + 1.0;
  for (int k = 0; k < 6; ++k) p = p * p;
  return p;
}

// Attempt k of a sample owns Philox block 16 * epoch + k; the flip is that of place_crop.
RF_HD Box place_box(uint64_t seed, uint64_t epoch, int64_t id, int h, int w, const BoxRange& range,
                    bool random_flip) {
  Box box = {0, 0, h, w, false};
  if (random_flip) {
    box.flip = place_crop(seed, epoch, id, 0, 0, 0, false, true).flip;
  }
  constexpr double kUnit = 1.0 / 4294967296.0;
  for (int k = 0; k < kBoxAttempts; ++k) {
    const Philox4 words =
        philox_block(seed, id, static_cast<int64_t>(16 * epoch) + k, kDomainResizedCrop);
    const double share =
        range.scale_low + (range.scale_high - range.scale_low) * (words.w[0] * kUnit);
    const double area = static_cast<double>(h) * w * share;
    const double ratio = range.ratio_low * exp_of(range.log_ratio * (words.w[1] * kUnit));
    const double box_w = floor(sqrt(area * ratio) + 0.5), box_h = floor(sqrt(area / ratio) + 0.5);
    if (box_w >= 1.0 && box_w <= w && box_h >= 1.0 && box_h <= h) {
      box.h = static_cast<int>(box_h);
      box.w = static_cast<int>(box_w);
      box.y = static_cast<int>(pick(words.w[2], h - box.h));
      box.x = static_cast<int>(pick(words.w[3], w - box.w));
      return box;
    }
  }
  // None fitted: the largest crop in the middle whose ratio is allowed.
  const double ratio = static_cast<double>(w) / h;
  if (ratio < range.ratio_low) {
    const double box_h = floor(w / range.ratio_low + 0.5);
    box.h = box_h < 1.0 ? 1 : box_h > h ? h : static_cast<int>(box_h);
  } else if (ratio > range.ratio_high) {
    const double box_w = floor(h * range.ratio_high + 0.5);
    box.w = box_w < 1.0 ? 1 : box_w > w ? w : static_cast<int>(box_w);
  }
  box.y = (h - box.h) / 2;
  box.x = (w - box.w) / 2;
  return box;
}

// The pixels [first, first + count) of `in` that make pixel i of `out`, by a triangle that is one
// pixel wide to each side, or in / out where that is more: torchvision's antialiased bilinear
// resize. Heights of the triangle are integers in units of 1 / (2 * out) of a pixel.
struct Taps {
  int first, count, at, step, height;
  float inverse;  // of the sum of the heights

  RF_HD Taps(int i, int in, int out) {
    const int centre = (2 * i + 1) * in, edge = centre - out;
    step = 2 * out;
    height = 2 * (in > out ? in : out);
    first = edge - height < 0 ? 0 : (edge - height) / step + 1;
    int last = (edge + height - 1) / step;
    if (last > in - 1) last = in - 1;
    count = last - first + 1;
    at = (2 * first + 1) * out - centre;
    int sum = 0;
    for (int k = 0; k < count; ++k) sum += height_of(k);
    inverse = 1.0f / static_cast<float>(sum);
  }
  RF_HD int height_of(int k) const {
    const int distance = at + k * step;
    return height - (distance < 0 ? -distance : distance);
  }
  RF_HD float weight(int k) const { return static_cast<float>(height_of(k)) * inverse; }
};

inline rf_status check_gather_index(const int64_t* index, int64_t b, int64_t n) {
  for (int64_t i = 0; i < b; ++i) {
    if (index[i] < 0 || index[i] >= n) {
      return fail(RF_INVALID_ARGUMENT, "index[%lld] must be in [0, %lld), got %lld",
                  static_cast<long long>(i), static_cast<long long>(n),
                  static_cast<long long>(index[i]));
    }
  }
  return RF_OK;
}

inline rf_status check_resized_crop(int64_t h, int64_t w, int64_t out_h, int64_t out_w,
                                    uint64_t epoch, const BoxRange& range) {
  const auto ll = [](int64_t v) { return static_cast<long long>(v); };
  if (h > kMaxResizedSide || w > kMaxResizedSide || out_h > kMaxResizedSide ||
      out_w > kMaxResizedSide) {
    return fail(RF_INVALID_ARGUMENT,
                "sides must be at most %lld to be resampled, got %lld x %lld to %lld x %lld",
                ll(kMaxResizedSide), ll(h), ll(w), ll(out_h), ll(out_w));
  }
  if (!(range.scale_low > 0 && range.scale_low <= range.scale_high && range.scale_high <= 1)) {
    return fail(RF_INVALID_ARGUMENT, "scale must be 0 < low <= high <= 1, got %g and %g",
                range.scale_low, range.scale_high);
  }
  if (!(range.ratio_low >= 1e-3 && range.ratio_low <= range.ratio_high && range.ratio_high <= 1e3 &&
        range.log_ratio >= 0 && range.log_ratio < 16)) {
    return fail(RF_INVALID_ARGUMENT, "ratio must be 0.001 <= low <= high <= 1000, got %g and %g",
                range.ratio_low, range.ratio_high);
  }
  if (epoch >> 44 != 0) {
    return fail(RF_INVALID_ARGUMENT, "epoch must be below 2^44 to be resampled");
  }
  return RF_OK;
}

// The arguments of rf_gather_batch_resized that every backend checks alike.
inline rf_status check_gather_batch_resized(int64_t n, int64_t c, int64_t h, int64_t w, int64_t b,
                                            const void* codes, int64_t code_channels,
                                            const void* imputed, rf_dtype imputed_dtype,
                                            int64_t out_h, int64_t out_w, rf_dtype out_dtype,
                                            uint64_t epoch, const BoxRange& range) {
  // Of gather_batch's checks, one does not apply: the output may be larger than the image.
  const rf_status status =
      check_gather_batch(n, c, h, w, b, codes, code_channels, imputed, imputed_dtype, 0,
                         out_h < 1 ? out_h : 1, out_w < 1 ? out_w : 1, out_dtype);
  return status != RF_OK ? status : check_resized_crop(h, w, out_h, out_w, epoch, range);
}

}  // namespace rf
