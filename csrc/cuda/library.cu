// What is not an op: last error, build information. Thread counts mean nothing on a GPU.
#include <string>

#include "common/status.h"
#include "cuda/support/launch.h"

#ifndef RF_CUDA_ARCHS
#define RF_CUDA_ARCHS "host"
#define RF_CUDA_COMPILER RF_COMPILER
#endif

extern "C" {

const char* rf_last_error(void) { return rf::error_buffer(); }

const char* rf_backend_name(void) { return RF_BACKEND_NAME; }

const char* rf_build_info(void) {
  return "compiler=" RF_CUDA_COMPILER "\narchitectures=" RF_CUDA_ARCHS;
}

void rf_set_num_threads(int) {}

int rf_get_num_threads(void) { return 1; }

}  // extern "C"
