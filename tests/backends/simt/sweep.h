// Every image size launched dry on one device profile; tests run it for all of them.
#pragma once

#include <cstdint>

#include "include/roarfast.h"

namespace rf::simt {

const char* sweep_ops();  // separated by spaces
// Launches `op` for all heights and widths up to `side` and all its dtypes, as if each call were
// the first of its process. `calls` counts them; the first that fails is the status.
rf_status sweep(const char* op, const char* device, int64_t side, int64_t* calls);

}  // namespace rf::simt
