// parallel_for for CPU kernels: OpenMP where it was found, std::thread otherwise.
#pragma once

#include <algorithm>
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#else
#include <atomic>
#include <thread>
#include <vector>
#endif

#include "include/roarfast.h"

namespace rf {

// How many threads parallel_for would use for `items` with at least `grain` of them each.
inline int plan_threads(int64_t items, int64_t grain) {
  const int64_t useful = (items + grain - 1) / std::max<int64_t>(grain, 1);
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(useful, rf_get_num_threads())));
}

// Calls body(begin, end, thread) over [0, items) in chunks of about `grain`, handed out
// dynamically: an expensive item does not hold up the others. `thread` is in [0,
// plan_threads(items, grain)), for scratch memory. The body must not throw, and its results must
// not depend on how the range is cut.
template <typename Body>
void parallel_for(int64_t items, int64_t grain, const Body& body) {
  if (items <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int threads = plan_threads(items, grain);
  if (threads == 1) {
    body(int64_t{0}, items, 0);
    return;
  }
  const int64_t chunks = (items + grain - 1) / grain;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    body(chunk * grain, std::min(items, (chunk + 1) * grain), omp_get_thread_num());
  }
#else
  std::atomic<int64_t> next{0};
  const auto work = [&](int thread) {
    for (int64_t chunk = next++; chunk < chunks; chunk = next++) {
      body(chunk * grain, std::min(items, (chunk + 1) * grain), thread);
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work, t);
  work(0);
  for (std::thread& t : pool) t.join();
#endif
}

}  // namespace rf
