// Who works on a system: one thread, or several, pass by pass, each on its bands of rows. Sharing a
// large image keeps one system in the last-level cache instead of one per thread. How rows are
// dealt out does not change results: what a pass adds up is kept by row and added in order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/support/parallel.h"

namespace rf {
namespace impute {

constexpr int kMaxCrew = 16;

struct Crew {
  int threads = 1;

  // Rows in a band: an even number, for bands to hold whole cells of the next level.
  int64_t band_rows(int64_t h) const {
    if (threads == 1) return h;
    const int64_t bands = kBandsPerThread * threads;
    return std::max<int64_t>(4, (h + 2 * bands - 1) / (2 * bands) * 2);
  }

  // body(begin, end, thread) over rows [0, h) of n elements each.
  template <typename Body>
  void rows(int64_t h, int64_t n, const Body& body) const {
    if (threads == 1 || h * n < kMinElements) {
      body(int64_t{0}, h, 0);
    } else {
      parallel_for(h, band_rows(h), body, threads);
    }
  }

 private:
  // More than one, as bands differ in how much of them is unknown.
  static constexpr int64_t kBandsPerThread = 4;
  // A pass over fewer takes a few microseconds, about what it takes to hand it out.
  static constexpr int64_t kMinElements = 32768;
};

}  // namespace impute
}  // namespace rf
