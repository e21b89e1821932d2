// Storage types and what they are computed in: float16,
// bfloat16 and float32 in float, float64 in double.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/qualifiers.h"
#include "include/roarfast.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

// GCC for aarch64 has the format, but before version 13 not the type in C++.
#if defined(__FLT16_MANT_DIG__) && defined(__x86_64__)
#define RF_HAS_FLOAT16
#endif

namespace rf {

struct half_t {
  uint16_t bits;
};
struct bfloat16_t {
  uint16_t bits;
};

RF_HD uint32_t float_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}
RF_HD float bits_float(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

// IEEE binary16 <-> binary32, round to nearest even, without branches so that loops vectorise.
RF_HD float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(h & 0x7fffu) << 13;
  // Multiplying by 2^112 rebiases normal and subnormal
  // numbers alike; inf and NaN need the top exponent.
  const uint32_t finite = float_bits(bits_float(magnitude) * 5.192296858534828e33f);
  const uint32_t special = magnitude | 0x7f800000u;
  return bits_float(sign | (magnitude >= 0x0f800000u ? special : finite));
}

RF_HD uint16_t float_to_half(float value) {
  const uint32_t x = float_bits(value);
  const uint32_t sign = (x >> 16) & 0x8000u;
  const uint32_t magnitude = x & 0x7fffffffu;
  // Normal results: rebias and round; a carry out of the mantissa correctly reaches inf.
  const uint32_t normal = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal results: adding 0.5 aligns the mantissa so that the FPU rounds it.
  const uint32_t subnormal = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t nan = 0x7e00u;
  uint32_t r = magnitude < 0x38800000u ? subnormal : normal;
  r = magnitude >= 0x47800000u ? 0x7c00u : r;
  r = magnitude > 0x7f800000u ? nan : r;
  return static_cast<uint16_t>(sign | r);
}

RF_HD float bfloat16_to_float(uint16_t b) { return bits_float(static_cast<uint32_t>(b) << 16); }

RF_HD uint16_t float_to_bfloat16(float value) {
  const uint32_t x = float_bits(value);
  const uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
  const uint32_t nan = (x >> 16) | 0x40u;
  return static_cast<uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

// The type a storage type is computed in.
template <typename T>
struct compute {
  using type = float;
};
template <>
struct compute<double> {
  using type = double;
};
template <typename T>
using compute_t = typename compute<T>::type;

template <typename T>
RF_HD compute_t<T> load(T v) {
  if constexpr (std::is_same_v<T, half_t>) {
#if defined(__CUDA_ARCH__)
    return __half2float(__ushort_as_half(v.bits));
#elif defined(RF_HAS_FLOAT16)
    _Float16 h;  // one instruction with F16C, a library call or the bit formula without
    memcpy(&h, &v.bits, 2);
    return static_cast<float>(h);
#else
    return half_to_float(v.bits);
#endif
  } else if constexpr (std::is_same_v<T, bfloat16_t>) {
    return bfloat16_to_float(v.bits);
  } else {
    return static_cast<compute_t<T>>(v);
  }
}

// To a storage type; values must be in range for integers.
template <typename T>
RF_HD T store(compute_t<T> v) {
  if constexpr (std::is_same_v<T, half_t>) {
#if defined(__CUDA_ARCH__)
    return {__half_as_ushort(__float2half_rn(v))};
#elif defined(RF_HAS_FLOAT16)
    const _Float16 h = static_cast<_Float16>(v);
    half_t r;
    memcpy(&r.bits, &h, 2);
    return r;
#else
    return {float_to_half(v)};
#endif
  } else if constexpr (std::is_same_v<T, bfloat16_t>) {
    return {float_to_bfloat16(v)};
  } else {
    return static_cast<T>(v);
  }
}

template <typename T>
struct type_tag {
  using type = T;
};

// Calls f(type_tag<T>{}) for a float dtype; false if it is none.
template <typename F>
bool dispatch_float(rf_dtype dtype, F&& f) {
  switch (dtype) {
    case RF_FLOAT16:
      f(type_tag<half_t>{});
      return true;
    case RF_BFLOAT16:
      f(type_tag<bfloat16_t>{});
      return true;
    case RF_FLOAT32:
      f(type_tag<float>{});
      return true;
    case RF_FLOAT64:
      f(type_tag<double>{});
      return true;
    default:
      return false;
  }
}

// The same for every dtype; bool is one byte and handled as uint8_t.
template <typename F>
bool dispatch_any(rf_dtype dtype, F&& f) {
  if (dtype == RF_UINT8 || dtype == RF_BOOL) {
    f(type_tag<uint8_t>{});
    return true;
  }
  return dispatch_float(dtype, static_cast<F&&>(f));
}

constexpr bool is_dtype(rf_dtype dtype) { return dtype >= RF_FLOAT16 && dtype <= RF_BOOL; }

constexpr int64_t dtype_bytes(rf_dtype dtype) {
  return dtype == RF_FLOAT64                       ? 8
         : dtype == RF_FLOAT32                     ? 4
         : (dtype == RF_UINT8 || dtype == RF_BOOL) ? 1
                                                   : 2;
}

}  // namespace rf
