// Border modes: which source index stands for a position outside [0, n).
#pragma once

#include <cstdint>

#include "common/qualifiers.h"
#include "include/roarfast.h"

namespace rf {

// One border mode per image axis.
struct Borders {
  rf_border y, x;
};

// Remainder with the sign of the divisor: floor_mod(-1, 5) == 4.
template <typename Int>
RF_HD Int floor_mod(Int i, Int n) {
  const Int r = i % n;
  return r < 0 ? r + n : r;
}

// Source index in [0, n) for position i, or -1 where RF_CONSTANT supplies the value.
// Holds for any i, however far outside: filters may be larger than the image.
// In CUDA kernels border_index_as<int> is the quick one: a 64-bit remainder is a long routine.
template <typename Int>
RF_HD Int border_index_as(Int i, Int n, rf_border mode) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case RF_REFLECT: {
      if (i < 0 && i >= -n) return -1 - i;  // all but the largest filters: no division
      if (i >= n && i < 2 * n) return 2 * n - 1 - i;
      const Int m = floor_mod(i, 2 * n);
      return m < n ? m : 2 * n - 1 - m;
    }
    case RF_MIRROR: {
      if (n == 1) return 0;
      const Int m = floor_mod(i, 2 * n - 2);
      return m < n ? m : 2 * n - 2 - m;
    }
    case RF_NEAREST:
      return i < 0 ? 0 : n - 1;
    case RF_WRAP:
      return floor_mod(i, n);
    case RF_CONSTANT:
      return -1;
  }
  return -1;
}

RF_HD int64_t border_index(int64_t i, int64_t n, rf_border mode) {
  return border_index_as<int64_t>(i, n, mode);
}

}  // namespace rf
