// The order in which total variation is summed, the same on every backend, so that results agree to
// the bit: bands of 8 rows; in a band, lane x % 32 sums its pixels in double, 32 columns after 32
// columns and down the rows; then a fixed tree over the lanes; then the bands from top to bottom.
#pragma once

#include <cmath>

#include "common/dtype.h"
#include "common/filter_args.h"

namespace rf {

constexpr int kTvBandRows = 8;
constexpr int kTvLanes = 32;  // a warp

struct TvPartial {  // of one band
  double sum, low, high;
};

inline int64_t tv_bands(int64_t h) { return (h + kTvBandRows - 1) / kTvBandRows; }

// The contribution of a pixel, from the differences to its right and lower neighbours.
template <bool kIsotropic, typename C>
RF_HD double tv_term(C across, C down) {
  if constexpr (kIsotropic) {
    // In double: the squares of small attributions would vanish in float.
    const double a = across, d = down;
    return sqrt(a * a + d * d);
  } else {
    return static_cast<double>((across < 0 ? -across : across) + (down < 0 ? -down : down));
  }
}

RF_HD double tv_finish(const TvPartial* bands, int64_t count, int64_t h, int64_t w, rf_tv_kind kind,
                       rf_tv_norm norm) {
  double sum = 0.0;
  for (int64_t b = 0; b < count; ++b) sum += bands[b].sum;
  if (norm == RF_TV_MINMAX) {
    double low = bands[0].low, high = bands[0].high;
    for (int64_t b = 1; b < count; ++b) {
      low = bands[b].low < low ? bands[b].low : low;
      high = bands[b].high > high ? bands[b].high : high;
    }
    const double range = high - low;
    return range > 0.0 ? sum / range : sum;  // a constant map has sum 0
  }
  if (norm == RF_TV_MEAN) {
    const int64_t pairs = h * (w - 1) + (h - 1) * w;
    const int64_t terms = kind == RF_TV_ISOTROPIC ? h * w : pairs;
    return terms > 0 ? sum / static_cast<double>(terms) : 0.0;
  }
  return sum;
}

inline rf_status check_tv(const void* in, const void* out, int64_t n, int64_t h, int64_t w,
                          rf_tv_kind kind, rf_tv_norm norm) {
  if (const rf_status bad = check_images(in, out, n, h, w)) return bad;
  if (kind != RF_TV_ANISOTROPIC && kind != RF_TV_ISOTROPIC) {
    return fail(RF_INVALID_ARGUMENT, "kind must be 0 or 1, got %d", static_cast<int>(kind));
  }
  if (norm < RF_TV_NONE || norm > RF_TV_MEAN) {
    return fail(RF_INVALID_ARGUMENT, "norm must be in [0, 2], got %d", static_cast<int>(norm));
  }
  return RF_OK;
}

// Calls f(tag, is_isotropic, needs_range) with the two choices as std::bool_constant.
template <typename F>
bool dispatch_tv(rf_dtype dtype, rf_tv_kind kind, rf_tv_norm norm, F&& f) {
  return dispatch_any(dtype, [&](auto tag) {
    const bool isotropic = kind == RF_TV_ISOTROPIC, range = norm == RF_TV_MINMAX;
    if (isotropic && range) f(tag, std::true_type{}, std::true_type{});
    if (isotropic && !range) f(tag, std::true_type{}, std::false_type{});
    if (!isotropic && range) f(tag, std::false_type{}, std::true_type{});
    if (!isotropic && !range) f(tag, std::false_type{}, std::false_type{});
  });
}

}  // namespace rf
