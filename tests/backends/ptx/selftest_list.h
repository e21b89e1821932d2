// What the selftest*.cu share: kernels are launched with their arrays announced,
// as the bindings do.
#pragma once

#include <string>
#include <vector>

#include "call_arrays.h"
#include "common/status.h"
#include "cuda/support/launch.h"

namespace rf::ptx {

constexpr unsigned kFullMask = 0xffffffffu;

struct Selftest {
  const char* name;
  rf_status (*run)();
};
std::vector<Selftest> right_kernels();  // selftest.cu
std::vector<Selftest> wrong_kernels();  // selftest_bugs.cu: all must fail

// A vector as an argument: const for the kernel; written by it; read and written.
template <typename T>
struct Argument {
  std::vector<T>& data;
  bool writable, initialised;
};
template <typename T>
Argument<T> input(std::vector<T>& data) {
  return {data, false, true};
}
template <typename T>
Argument<T> output(std::vector<T>& data) {
  return {data, true, false};
}
template <typename T>
Argument<T> both(std::vector<T>& data) {
  return {data, true, true};
}

template <typename T>
T pass(T value) {
  return value;
}
template <typename T>
T* pass(Argument<T> a) {
  const size_t bytes = a.data.size() * sizeof(T);
  note_array(a.data.data(), bytes, a.writable && !a.initialised);
  if (a.writable && a.initialised)
    note_array(a.data.data(), bytes, true);  // as an alias: initialised
  return a.data.data();
}

template <typename... Params, typename... Args>
rf_status run(void (*kernel)(Params...), dim3 grid, dim3 block, size_t dynamic_bytes,
              Args... args) {
  begin_call("selftest");
  return launch(kernel, grid, block, dynamic_bytes, nullptr, (Params)(pass(args))...);
}

// Of a launch and, where it succeeded, a comparison of what it computed.
template <typename Check>
rf_status then(rf_status status, Check check) {
  if (status != RF_OK || check()) return status;
  return fail(RF_INTERNAL_ERROR, "wrong result");
}

}  // namespace rf::ptx
