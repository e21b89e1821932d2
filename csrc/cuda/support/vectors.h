// Four neighbouring values at once: one load or store of up to 16 bytes (two
// for doubles).
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/support/launch.h"

namespace rf {

template <typename T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four {
  T v[4];
};

// a / b for a >= 0: a 64-bit division is a long routine on a GPU, and most
// numbers are small.
__device__ __forceinline__ int64_t quotient(int64_t a, uint32_t b) {
  return a >> 32 ? a / b : static_cast<uint32_t>(a) / b;
}

// Whether an array can be read in fours from its start on.
template <typename T>
bool is_aligned_for_fours(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % alignof(Four<T>) == 0;
}

// Rows [n, blocks] in slices whose items 32 bits can count, the last step of a thread included: no
// kernel needs a second instance for arrays of gigabytes. f(row, rows, block, blocks of a row).
// The emulator's slices are small, so that its tests see several.
#ifdef RF_SIMT
constexpr int64_t kSliceItems = 1 << 12;
#else
constexpr int64_t kSliceItems = 1 << 29;
#endif
template <typename F>
rf_status for_slices(int64_t n, int64_t blocks, const F& f) {
  const int64_t rows_at_once = std::max<int64_t>(kSliceItems / blocks, 1);
  for (int64_t row = 0; row < n; row += rows_at_once) {
    for (int64_t block = 0; block < blocks; block += kSliceItems) {
      const rf_status status =
          f(row, std::min(rows_at_once, n - row), block, std::min(kSliceItems, blocks - block));
      if (status != RF_OK) return status;
    }
  }
  return RF_OK;
}

}  // namespace rf
