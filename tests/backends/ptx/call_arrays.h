// What the bindings tell about the arrays of a call (python/python_call.h), so that the interpreter
// knows which memory kernels may touch.
#pragma once

#include <cstddef>

namespace rf {

void begin_call(const char* function);
// For every pointer of the call in order, null ones too. bytes = 0: unknown, nothing may touch it.
void note_array(const void* data, size_t bytes, bool writable);

}  // namespace rf
