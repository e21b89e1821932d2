// Kernels that exercise the interpreter: right ones, and wrong ones that it must notice.
#pragma once

#include <string>
#include <vector>

#include "include/roarfast.h"

namespace rf::ptx {

std::vector<std::string> selftest_names();
rf_status selftest(const std::string& name);

}  // namespace rf::ptx
