// What the maximum filters of every backend share: the window of a pixel, and numbers that order
// like half precision floats but compare as integers.
#pragma once

#include "common/dtype.h"

namespace rf {

// A window reaches `before` pixels back and `after` forward. Beyond twice the image nothing new
// appears in any border mode (the longest period is 2 n), so larger sizes are cut: bounded cost.
struct MaxWindow {
  int64_t before, after;
  RF_HD int64_t size() const { return before + 1 + after; }
};
// `origin` moves the window back, as in SciPy: by at most what keeps its pixel inside.
inline MaxWindow max_window(int64_t size, int64_t origin, int64_t n) {
  const int64_t before = size / 2 + origin, after = size - 1 - before;
  return {before < 2 * n ? before : 2 * n, after < 2 * n ? after : 2 * n};
}

// The type in which values are compared: 16-bit floats
// as integers of the same order, the others as they are.
template <typename T>
struct max_key {
  using type = T;
};
template <>
struct max_key<half_t> {
  using type = int16_t;
};
template <>
struct max_key<bfloat16_t> {
  using type = int16_t;
};
template <typename T>
using max_key_t = typename max_key<T>::type;

// Sign and magnitude <-> two's complement: flipping
// the magnitude of negative numbers. Its own inverse.
RF_HD int16_t flip_negative(int16_t bits) {
  return static_cast<int16_t>(bits ^ ((bits >> 15) & 0x7fff));
}
template <typename T>
RF_HD max_key_t<T> to_max_key(T v) {
  if constexpr (sizeof(T) == 2) {
    return flip_negative(static_cast<int16_t>(v.bits));
  } else {
    return v;
  }
}
template <typename T>
RF_HD T from_max_key(max_key_t<T> key) {
  if constexpr (sizeof(T) == 2) {
    return {static_cast<uint16_t>(flip_negative(key))};
  } else {
    return key;
  }
}

}  // namespace rf
