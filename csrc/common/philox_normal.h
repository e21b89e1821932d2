// What the CPU and CUDA kernels of philox_normal share: argument checks and block numbers.
#pragma once

#include <cstdint>

#include "common/status.h"

namespace rf {

inline int64_t normal_blocks(int64_t features) { return (features + 3) / 4; }

inline rf_status check_philox_normal(const int64_t* index, const float* out, int64_t n,
                                     int64_t features, int64_t draw, int64_t domain) {
  if (n < 0 || features < 0) {
    return fail(RF_INVALID_ARGUMENT, "n and features must be >= 0, got %lld and %lld",
                static_cast<long long>(n), static_cast<long long>(features));
  }
  if (n > 0 && features > 0 && (index == nullptr || out == nullptr)) {
    return fail(RF_INVALID_ARGUMENT, "index and out must not be null");
  }
  if (domain < 0 || domain > 0xffff) {
    return fail(RF_INVALID_ARGUMENT, "domain must be in [0, 65535], got %lld",
                static_cast<long long>(domain));
  }
  // Blocks are numbered in 48 bits.
  const int64_t draws = features > 0 ? (int64_t{1} << 48) / normal_blocks(features) : INT64_MAX;
  if (draw < 0 || draw >= draws) {
    return fail(RF_INVALID_ARGUMENT, "draw must be in [0, %lld) for %lld features, got %lld",
                static_cast<long long>(draws), static_cast<long long>(features),
                static_cast<long long>(draw));
  }
  return RF_OK;
}

}  // namespace rf
