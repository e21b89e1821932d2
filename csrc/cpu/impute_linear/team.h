// Who works on a system: one thread, or several, pass by pass, each on its bands of rows. Sharing a
// large image keeps one system in the last-level cache instead of one per thread. How rows are
// dealt out does not change results: what a pass adds up is kept by row and added in order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/impute_linear/policy.h"
#include "cpu/support/parallel.h"

namespace rf {
namespace impute {

struct Team {
  int threads = 1;

  // Rows in a band: an even number, for bands to hold whole cells of the next level.
  int64_t band_rows(int64_t h) const {
    if (threads == 1) return h;
    const int64_t bands = kTeamBandsPerThread * threads;
    return std::max<int64_t>(4, (h + 2 * bands - 1) / (2 * bands) * 2);
  }

  // body(begin, end, thread) over rows [0, h) of n elements each.
  template <typename Body>
  void rows(int64_t h, int64_t n, const Body& body) const {
    if (threads == 1 || h * n < kTeamMinElements) {
      body(int64_t{0}, h, 0);
    } else {
      parallel_for(h, band_rows(h), body, threads);
    }
  }
};

}  // namespace impute
}  // namespace rf
