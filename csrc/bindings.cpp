// Python bindings of one backend library. Compiled once per backend (module _cpu_base, _cpu_v3,
// _cpu_v4, _cuda, _simt): pointers and streams come in as integers, the GIL is released, a bad
// status is an exception.
#include <pybind11/pybind11.h>

#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "common/cpu_features.h"
#include "include/roarfast.h"

#ifdef RF_SIMT
#include "block.h"
#include "selftest.h"
#endif

namespace py = pybind11;

namespace {

// What Python passes for a C parameter: integers for pointers and enums, numbers as they are.
template <typename T>
using python_t = std::conditional_t<std::is_pointer_v<T>, std::uintptr_t,
                                    std::conditional_t<std::is_enum_v<T>, int, T>>;

template <typename T>
T from_python(python_t<T> v) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(v);
  } else {
    return static_cast<T>(v);
  }
}

void check(rf_status status) {
  if (status == RF_OK) return;
  const char* why = rf_last_error();
  if (status == RF_INVALID_ARGUMENT) throw py::value_error(why);
  if (status == RF_UNSUPPORTED_DTYPE) throw py::type_error(why);
  throw std::runtime_error(why);
}

template <typename... Args>
void def(py::module_& m, const char* name, rf_status (*f)(Args...)) {
  m.def(name, [f](python_t<Args>... args) {
    rf_status status;
    {
      py::gil_scoped_release release;
      status = f(from_python<Args>(args)...);
    }
    check(status);
  });
}

template <typename... Args>
void def(py::module_& m, const char* name, int64_t (*f)(Args...)) {
  m.def(name, [f](python_t<Args>... args) { return f(from_python<Args>(args)...); });
}

}  // namespace

#define RF_DEF(op) def(m, #op, rf_##op)

PYBIND11_MODULE(RF_MODULE, m) {
  m.def("best_simd_level", &rf::best_simd_level);
  m.def("backend_name", &rf_backend_name);
  m.def("build_info", &rf_build_info);
  m.def("set_num_threads", &rf_set_num_threads);
  m.def("get_num_threads", &rf_get_num_threads);

#ifdef RF_SIMT  // the emulator: csrc/simt/README.md
  m.def("simt_set_seed", &rf::simt::set_seed);
  m.def("simt_get_seed", &rf::simt::get_seed);
  m.def("simt_selftest_names", &rf::simt::selftest_names);
  m.def(
      "simt_selftest", [](const char* name) { check(rf::simt::selftest(name)); },
      py::call_guard<py::gil_scoped_release>());
#endif

  RF_DEF(total_variation);
  RF_DEF(total_variation_workspace_bytes);
  RF_DEF(gaussian_filter);
  RF_DEF(gaussian_filter_workspace_bytes);
  RF_DEF(maximum_filter);
  RF_DEF(maximum_filter_workspace_bytes);
  RF_DEF(sobel);

  RF_DEF(gather_batch);
  RF_DEF(philox_normal);
  RF_DEF(impute_linear);
  RF_DEF(impute_linear_workspace_bytes);
  RF_DEF(percentile);
  RF_DEF(percentile_workspace_bytes);
  RF_DEF(removal_mask);
  RF_DEF(removal_mask_workspace_bytes);
  RF_DEF(rank_codes);
  RF_DEF(rank_codes_workspace_bytes);
  RF_DEF(removed_fraction);
  RF_DEF(fill);
  RF_DEF(remove);
  RF_DEF(remove_workspace_bytes);
  RF_DEF(pixel_random);
  RF_DEF(block_random);
}
