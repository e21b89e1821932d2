// The threads of the CPU kernels: parallel_for, and the pool under it (thread_pool.cpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "include/roarfast.h"

namespace rf {

// Calls work(context, 0) on this thread and meanwhile, on up to threads - 1 workers,
// work(context, 1), work(context, 2), ... Returns when this thread's call has returned and no
// worker is inside one. Workers that have not begun by then never do, so `work` must be able to
// finish everything alone: it takes pieces from a shared counter until there are none. That is why
// this is not an OpenMP loop, whose end waits for every thread of the team: where other processes
// keep the cores busy, a worker is first run after a time slice of milliseconds, and a call of
// 100 microseconds would wait for it. It also works in a forked child, where libgomp hangs.
void run_on_pool(int threads, void (*work)(const void* context, int thread), const void* context);

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
