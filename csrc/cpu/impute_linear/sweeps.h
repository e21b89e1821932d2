// Many Jacobi-like sweeps over the fine level without leaving the cache: sweep k + 1 follows sweep
// k one row behind, so that a band of rows takes all of them while it is at hand. Two arrays
// alternate; a sweep overwrites what the one before the last has left.
#pragma once

#include <algorithm>

#include "cpu/impute_linear/stencil.h"

namespace rf {
namespace impute {

// Calls step(k, j) for sweeps k in [0, sweeps) and rows j in [0, h), such that (k, j) comes after
// (k - 1, j + 1) and before (k + 1, j).
template <typename Step>
RF_INLINE void for_sweeps(int sweeps, int64_t h, int64_t row_bytes, const Step& step) {
  // Bands of both arrays in a first-level cache of 32 KB.
  const int depth = static_cast<int>(
      std::max<int64_t>(2, std::min<int64_t>(sweeps, (int64_t{14} << 10) / row_bytes - 2)));
  for (int first = 0; first < sweeps; first += depth) {
    const int count = std::min(depth, sweeps - first);
    for (int64_t front = 0; front < h + count - 1; ++front) {
      const int begin = static_cast<int>(std::max<int64_t>(0, front - h + 1));
      const int end = static_cast<int>(std::min<int64_t>(count, front + 1));
      for (int k = begin; k < end; ++k) step(first + k, front - k);
    }
  }
}

// Row j of D^-1 O(in), the weighted mean over neighbours: body(i, mean).
template <typename Layout, bool kCustom, typename Body>
RF_INLINE void mean_row(const Fine<Layout>& f, const typename Layout::Real* in, int64_t j,
                        const Body& body) {
  using Real = typename Layout::Real;
  const Real *mid = in + j * f.stride, *up = j > 0 ? mid - f.stride : f.zeros,
             *down = j + 1 < f.h ? mid + f.stride : f.zeros, *weight = f.mean_weight_row(j);
  neighbour_sum<Layout, kCustom>(up, mid, down, Span{0, static_cast<int32_t>(f.n)}, f.n, f.weights,
                                 f.zeros,
                                 [&](int64_t i, V<Real> o) { body(i, load(weight + i) * o); });
}

}  // namespace impute
}  // namespace rf
