// Argument checks that every backend of the filters makes, with the same sentences.
#pragma once

#include <initializer_list>

#include "common/border.h"
#include "common/dtype.h"
#include "common/status.h"

namespace rf {

inline rf_status check_images(const void* in, const void* out, int64_t n, int64_t h, int64_t w) {
  if (n < 0 || h < 0 || w < 0) {
    return fail(RF_INVALID_ARGUMENT, "sizes must be >= 0, got n=%lld h=%lld w=%lld",
                static_cast<long long>(n), static_cast<long long>(h), static_cast<long long>(w));
  }
  if (n * h * w > 0 && (in == nullptr || out == nullptr)) {
    return fail(RF_INVALID_ARGUMENT, "in and out must not be null");
  }
  return RF_OK;
}

inline rf_status check_borders(const Borders& modes) {
  for (const rf_border mode : {modes.y, modes.x}) {
    if (mode >= RF_REFLECT && mode <= RF_CONSTANT) continue;
    return fail(RF_INVALID_ARGUMENT, "mode must be a border code in [0, 4], got %d",
                static_cast<int>(mode));
  }
  return RF_OK;
}

// Sizes of workspaces grow with the radius of a Gaussian; far beyond any image they would overflow.
constexpr int64_t kMaxRadius = int64_t{1} << 20;
constexpr int64_t kMaxOrder = 64;
constexpr int64_t kMaxWindow = int64_t{1} << 31;

// A parameter along each image axis must be in [low, high].
inline rf_status check_per_axis(const char* name, int64_t along_y, int64_t along_x, int64_t low,
                                int64_t high) {
  if (along_y >= low && along_x >= low && along_y <= high && along_x <= high) return RF_OK;
  return fail(RF_INVALID_ARGUMENT, "%s must be in [%lld, %lld], got %lld (rows) and %lld (columns)",
              name, static_cast<long long>(low), static_cast<long long>(high),
              static_cast<long long>(along_y), static_cast<long long>(along_x));
}

// `origin` moves a window of `size` pixels, which must still hold its own pixel.
inline rf_status check_origin(int64_t size_y, int64_t size_x, int64_t origin_y, int64_t origin_x) {
  const auto holds = [](int64_t size, int64_t origin) {
    return origin >= -(size / 2) && origin < size - size / 2;
  };
  if (holds(size_y, origin_y) && holds(size_x, origin_x)) return RF_OK;
  return fail(RF_INVALID_ARGUMENT,
              "origin must keep a pixel inside its window, got %lld (rows) and %lld (columns)",
              static_cast<long long>(origin_y), static_cast<long long>(origin_x));
}

}  // namespace rf
