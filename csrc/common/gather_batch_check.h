// The arguments of rf_gather_batch that every backend checks alike.
#pragma once

#include "common/status.h"

namespace rf {

constexpr int64_t kMaxPad = int64_t{1} << 30;  // beyond this, sizes of padded images could overflow

inline rf_status check_gather_batch(int64_t n, int64_t c, int64_t h, int64_t w, int64_t b,
                                    const void* codes, int64_t code_channels, const void* imputed,
                                    rf_dtype imputed_dtype, int64_t pad, int64_t out_h,
                                    int64_t out_w, rf_dtype out_dtype) {
  const auto ll = [](int64_t v) { return static_cast<long long>(v); };
  if (n < 0 || b < 0 || c < 1 || h < 1 || w < 1 || out_h < 1 || out_w < 1 || pad < 0) {
    return fail(RF_INVALID_ARGUMENT,
                "sizes must be positive, got n %lld, b %lld, c %lld, h %lld, w %lld, "
                "out %lld x %lld, pad %lld",
                ll(n), ll(b), ll(c), ll(h), ll(w), ll(out_h), ll(out_w), ll(pad));
  }
  if (pad > kMaxPad) {
    return fail(RF_INVALID_ARGUMENT, "pad must be at most %lld, got %lld", ll(kMaxPad), ll(pad));
  }
  if (out_h > h + 2 * pad || out_w > w + 2 * pad) {
    return fail(RF_INVALID_ARGUMENT, "crop %lld x %lld does not fit the padded image %lld x %lld",
                ll(out_h), ll(out_w), ll(h + 2 * pad), ll(w + 2 * pad));
  }
  if (codes != nullptr && code_channels != 1 && code_channels != c) {
    return fail(RF_INVALID_ARGUMENT, "code_channels must be 1 or %lld, got %lld", ll(c),
                ll(code_channels));
  }
  if (imputed != nullptr && imputed_dtype != RF_UINT8 && imputed_dtype != RF_FLOAT16) {
    return fail_dtype("gather_batch (imputed)", imputed_dtype);
  }
  if (out_dtype != RF_FLOAT32 && out_dtype != RF_FLOAT16 && out_dtype != RF_BFLOAT16) {
    return fail_dtype("gather_batch", out_dtype);
  }
  return RF_OK;
}

}  // namespace rf
