// What the module offers to tests beside the C API: options, counters, coverage, selftests.
#pragma once

#include <pybind11/pybind11.h>

namespace rf::ptx {

void bind(pybind11::module_& module);

}  // namespace rf::ptx
