// What both backends of distance_transform share.
#pragma once

#include <climits>
#include <cstdint>

#include "common/status.h"

namespace rf {

constexpr int64_t kMaxDistanceSide = 32767;  // squared distances fit int32

inline rf_status check_distance_transform(int64_t n, int64_t h, int64_t w) {
  if (n < 0 || h < 0 || w < 0 || h > kMaxDistanceSide || w > kMaxDistanceSide) {
    return fail(RF_INVALID_ARGUMENT, "images must be at most %lld x %lld, got %lld x %lld",
                static_cast<long long>(kMaxDistanceSide), static_cast<long long>(kMaxDistanceSide),
                static_cast<long long>(h), static_cast<long long>(w));
  }
  return RF_OK;
}

}  // namespace rf
