// Argument checks that every backend of the filters makes, with the same sentences.
#pragma once

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

inline rf_status check_border(rf_border mode) {
  if (mode >= RF_REFLECT && mode <= RF_CONSTANT) return RF_OK;
  return fail(RF_INVALID_ARGUMENT, "mode must be a border code in [0, 4], got %d",
              static_cast<int>(mode));
}

// A parameter along each image axis must be at least `low`.
inline rf_status check_per_axis(const char* name, int64_t along_y, int64_t along_x, int64_t low) {
  if (along_y >= low && along_x >= low) return RF_OK;
  return fail(RF_INVALID_ARGUMENT, "%s must be >= %lld, got %lld (rows) and %lld (columns)", name,
              static_cast<long long>(low), static_cast<long long>(along_y),
              static_cast<long long>(along_x));
}

}  // namespace rf
