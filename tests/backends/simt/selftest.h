// Kernels that exercise the emulator itself, by name; tests/test_simt.py runs them.
#pragma once

#include "include/roarfast.h"

namespace rf::simt {

// Space-separated names; those of kernels with a mistake, which must be caught, end in _bug.
const char* selftest_names();
rf_status selftest(const char* name);

}  // namespace rf::simt
