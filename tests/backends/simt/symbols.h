// Names for addresses, in messages.
#pragma once

#include <string>

namespace rf::simt {

// "rf::tile_kernel<float, 32>"
std::string kernel_name(const void* kernel);

// "gaussian_filter.cu:88" of an instruction's return address; empty where there are no line tables
// or no addr2line.
std::string source_line(const void* code);

}  // namespace rf::simt
