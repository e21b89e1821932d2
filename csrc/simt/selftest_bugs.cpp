#include "selftest_bugs.h"

#include <cstring>
#include <string>
#include <vector>

#include "common/launch.h"

namespace rf::simt {

namespace {

// ---- a barrier is missing between the store and another thread's load -------------------------------------
__global__ void missing_barrier_kernel(const float* in, float* out) {
  RF_SHARED(float, row, [64]);
  row[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = row[63 - threadIdx.x];
}

rf_status missing_barrier() {
  std::vector<float> in(64, 1.0f), out(64);
  return launch(missing_barrier_kernel, 1, 64, 0, nullptr, in.data(), out.data());
}

// ---- half of the block does not come to the barrier ---------------------------------------------------------
__global__ void divergent_barrier_kernel(int* out) {
  if (threadIdx.x < 32) __syncthreads();
  out[threadIdx.x] = 1;
}

rf_status divergent_barrier() {
  std::vector<int> out(64);
  return launch(divergent_barrier_kernel, 1, 64, 0, nullptr, out.data());
}

// ---- out of the row, but still inside the array -----------------------------------------------------------
__global__ void shared_row_overrun_kernel(int column) {
  RF_SHARED(float, tile, [8][8]);
  tile[threadIdx.x][column] = 1.0f;
}

rf_status shared_row_overrun() { return launch(shared_row_overrun_kernel, 1, 4, 0, nullptr, 8); }

// ---- out of the array, through a pointer ----------------------------------------------------------------------
__device__ void store(float* p, int i) { p[i] = 1.0f; }
__global__ void shared_overrun_kernel(int i) {
  RF_SHARED(float, buffer, [32]);
  store(buffer, i + threadIdx.x);
}

rf_status shared_overrun() { return launch(shared_overrun_kernel, 1, 4, 0, nullptr, 30); }

struct Bug {
  const char* name;
  rf_status (*run)();
};

const Bug kBugs[] = {
    {"missing_barrier_bug", missing_barrier},
    {"divergent_barrier_bug", divergent_barrier},
    {"shared_row_overrun_bug", shared_row_overrun},
    {"shared_overrun_bug", shared_overrun},
};

}  // namespace

const char* bug_names() {
  static const std::string names = [] {
    std::string all;
    for (const Bug& bug : kBugs) all += std::string(bug.name) + " ";
    return all;
  }();
  return names.c_str();
}

rf_status run_bug(const char* name) {
  for (const Bug& bug : kBugs) {
    if (strcmp(bug.name, name) == 0) return bug.run();
  }
  return fail(RF_INVALID_ARGUMENT, "no selftest is called %s", name);
}

}  // namespace rf::simt
