// The name of a kernel from its address, for messages.
#pragma once

#include <cstddef>

namespace rf::simt {

const char* kernel_name(const void* kernel, char* text, size_t text_bytes);

}  // namespace rf::simt
