// Kernels with one mistake each: the launch must fail with a sentence about it.
#pragma once

#include "include/roarfast.h"

namespace rf::simt {

const char* bug_names();
rf_status run_bug(const char* name);

}  // namespace rf::simt
