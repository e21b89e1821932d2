// parallel_for for CPU kernels.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "cpu/support/thread_pool.h"
#include "include/roarfast.h"

namespace rf {

// How many threads parallel_for would use for `items` with at least `grain` of them each.
inline int plan_threads(int64_t items, int64_t grain) {
  const int64_t useful = (items + grain - 1) / std::max<int64_t>(grain, 1);
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(useful, rf_get_num_threads())));
}

// Calls body(begin, end, thread) over [0, items) in chunks of about `grain`, handed out
// dynamically: an expensive item does not hold up the others. `thread` is in [0,
// plan_threads(items, grain)), for scratch memory, and below max_threads. The body must not throw,
// and its results must not depend on how the range is cut.
template <typename Body>
void parallel_for(int64_t items, int64_t grain, const Body& body,
                  int max_threads = std::numeric_limits<int>::max()) {
  if (items <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int threads = std::min(plan_threads(items, grain), max_threads);
  if (threads == 1) {
    body(int64_t{0}, items, 0);
    return;
  }
  std::atomic<int64_t> next{0};
  const auto take_chunks = [&](int thread) {
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= items) return;
      body(begin, std::min(items, begin + grain), thread);
    }
  };
  run_on_pool(
      threads,
      [](const void* context, int thread) {
        (*static_cast<const decltype(take_chunks)*>(context))(thread);
      },
      &take_chunks);
}

}  // namespace rf
