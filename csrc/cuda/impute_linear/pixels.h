// The arguments of a call, and its pixels in every dtype.
#pragma once

#include "common/dtype.h"
#include "common/philox.h"
#include "cuda/impute_linear/block.h"

namespace rf {
namespace impute {

struct Arguments {
  const void* x;
  const uint8_t* mask;
  void* out;
  rf_dtype in_dtype, out_dtype;
  int64_t systems, c;
  bool channels_last;
  int64_t mask_stride;
  int max_iter;
  double empty_value, noise;
  bool normal_noise;
  uint64_t seed;
  const int64_t* index;
  int32_t* iterations;
  double* residual;
  int32_t* status;
  int64_t* empty;
  uint8_t* workspace;
  int64_t bytes_per_block;
};

// f(type_tag<T>): the dtype is uniform over the grid, and a switch is cheaper than a kernel per
// dtype. Doubles are solved in double only.
template <typename Real, typename F>
__device__ __forceinline__ void with_type(rf_dtype dtype, const F& f) {
  switch (dtype) {
    case RF_FLOAT16:
      return f(type_tag<half_t>{});
    case RF_BFLOAT16:
      return f(type_tag<bfloat16_t>{});
    case RF_FLOAT32:
      return f(type_tag<float>{});
    case RF_FLOAT64:
      if constexpr (sizeof(Real) == 8) f(type_tag<double>{});
      return;
    default:
      return f(type_tag<uint8_t>{});
  }
}

template <typename Real, typename T>
__device__ __forceinline__ Real to_real(T v) {
  if constexpr (std::is_same_v<T, uint8_t> || std::is_same_v<T, double>) {
    return static_cast<Real>(v);
  } else {
    return static_cast<Real>(load(v));
  }
}

template <typename T, typename Real>
__device__ __forceinline__ T from_real(Real v) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    v = v < 0 ? Real(0) : v > 255 ? Real(255) : v;
    return static_cast<uint8_t>(rint(v));
  } else if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(v);
  } else {
    return store<T>(static_cast<float>(v));
  }
}

// The dtypes that a known pixel passes through unchanged are one type; uint8 images may become
// float16 or float32. f(type_tag<In>, type_tag<Out>).
template <typename Real, typename F>
__device__ __forceinline__ void with_types(rf_dtype in, rf_dtype out, const F& f) {
  if (in == out) {
    with_type<Real>(in, [&](auto tag) { f(tag, tag); });
  } else if (out == RF_FLOAT16) {
    f(type_tag<uint8_t>{}, type_tag<half_t>{});
  } else {
    f(type_tag<uint8_t>{}, type_tag<float>{});
  }
}

// Four neighbouring pixels in one store; nvcc takes the assignment of a struct apart here.
template <typename T>
__device__ __forceinline__ void store_four(T* p, const T (&v)[4]) {
  if constexpr (std::is_same_v<T, float>) {
    __stcg(reinterpret_cast<float4*>(p), make_float4(v[0], v[1], v[2], v[3]));
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    __stcg(reinterpret_cast<uchar4*>(p), make_uchar4(v[0], v[1], v[2], v[3]));
  } else {
    __stcg(reinterpret_cast<ushort4*>(p), make_ushort4(v[0].bits, v[1].bits, v[2].bits, v[3].bits));
  }
}

// Bytes are copied for known pixels, so that they stay as they are, NaN payloads and all.
template <typename Real, typename In, typename Out>
__device__ __forceinline__ Out known_pixel(In v) {
  if constexpr (std::is_same_v<In, Out>) {
    return v;
  } else {
    return from_real<Out>(to_real<Real>(v));
  }
}

// Four numbers of the noise of one Philox block; zeros if there is none.
__device__ __forceinline__ void noise_of_block(const Arguments& a, uint64_t seed, int64_t sample,
                                               int64_t block, float noise[4]) {
  for (int k = 0; k < 4; ++k) noise[k] = 0;
  if (a.noise == 0) return;
  const Philox4 words = philox_block(seed, sample, block, kDomainImputeNoise);
  if (a.normal_noise) {
    normals_from_block(words, noise);
  } else {
    for (int k = 0; k < 4; ++k) noise[k] = uniform_from_word(words.w[k]);
  }
}

}  // namespace impute
}  // namespace rf
