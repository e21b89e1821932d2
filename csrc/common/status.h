// Status codes with a sentence:
//   return fail(RF_INVALID_ARGUMENT, "radius must be >= 0, got %lld", r);
#pragma once

#include <cstdarg>
#include <cstdio>
#include <initializer_list>

#include "include/roarfast.h"

namespace rf {

inline char* error_buffer() {
  static thread_local char buffer[512] = "";
  return buffer;
}
constexpr int kErrorBufferBytes = 512;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
inline rf_status fail(rf_status status, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(error_buffer(), kErrorBufferBytes, format, args);
  va_end(args);
  return status;
}

// A null pointer where there is something to read or write: an error of the caller, not a crash.
inline rf_status check_not_null(const char* op, std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers) {
    if (pointer == nullptr) return fail(RF_INVALID_ARGUMENT, "%s: an array is null", op);
  }
  return RF_OK;
}

inline rf_status fail_dtype(const char* op, rf_dtype dtype) {
  return fail(RF_UNSUPPORTED_DTYPE, "%s has no kernel for dtype code %d", op,
              static_cast<int>(dtype));
}

}  // namespace rf
