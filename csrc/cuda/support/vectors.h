// Four neighbouring values at once: one load or store of up to 16 bytes (two
// for doubles).
#pragma once

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

}  // namespace rf
