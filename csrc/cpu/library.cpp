// What is not an op: thread count, last error, build information.
#include <string>

#include "common/status.h"

namespace {
// Per calling thread: a caller sets it once, and the size of a workspace and the call that uses it
// agree whatever other threads of the program set meanwhile.
thread_local int num_threads = 1;
}  // namespace

extern "C" {

const char* rf_last_error(void) { return rf::error_buffer(); }

const char* rf_backend_name(void) { return RF_BACKEND_NAME; }

const char* rf_build_info(void) {
  static const std::string info = std::string("compiler=") + RF_COMPILER + "\nthreading=pool";
  return info.c_str();
}

void rf_set_num_threads(int threads) { num_threads = threads < 1 ? 1 : threads; }

int rf_get_num_threads(void) { return num_threads; }

}  // extern "C"
