// Unsigned integers in the order of the values of a dtype, for selection by digits: -0 has the key
// of +0, NaN that of +inf.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/dtype.h"
#include "common/qualifiers.h"

namespace rf {

template <typename T>
struct KeyOf {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static constexpr int kBits = 8 * sizeof(T);
};
template <typename T>
using key_t = typename KeyOf<T>::type;

template <typename T>
RF_HD bool is_nan(T v) {
  const auto x = load(v);
  return x != x;
}

// From the bits of an IEEE format with `kBits` bits: negative numbers are flipped, the others get
// the top bit.
template <typename T>
RF_HD key_t<T> order_key(T v) {
  using Key = key_t<T>;
  if constexpr (std::is_same_v<T, uint8_t>) {
    return v;
  } else {
    constexpr int kBits = KeyOf<T>::kBits, kMantissa = std::is_same_v<T, double>       ? 52
                                                       : std::is_same_v<T, float>      ? 23
                                                       : std::is_same_v<T, bfloat16_t> ? 7
                                                                                       : 10;
    constexpr Key kTop = Key{1} << (kBits - 1), kAll = kTop | (kTop - 1);
    constexpr Key kInf = ((kTop >> kMantissa) - 1) << kMantissa;
    Key bits = 0;
    if constexpr (sizeof(T) == 2) {
      bits = v.bits;
    } else {
      memcpy(&bits, &v, sizeof(T));
    }
    if ((bits & ~kTop) > kInf) bits = kInf;
    if (bits == kTop) bits = 0;
    return (bits & kTop) ? (~bits & kAll) : (bits | kTop);
  }
}

// The value of a key, as it is computed with.
template <typename T>
RF_HD compute_t<T> key_value(key_t<T> key) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<float>(key);
  } else {
    constexpr int kBits = KeyOf<T>::kBits;
    constexpr key_t<T> kTop = key_t<T>{1} << (kBits - 1), kAll = kTop | (kTop - 1);
    const key_t<T> bits = (key & kTop) ? (key ^ kTop) : (~key & kAll);
    T v;
    if constexpr (sizeof(T) == 2) {
      v.bits = static_cast<uint16_t>(bits);
    } else {
      memcpy(&v, &bits, sizeof(T));
    }
    return load(v);
  }
}

}  // namespace rf
