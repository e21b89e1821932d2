// Small functions on text, for the parser.
#pragma once

#include <string>
#include <vector>

namespace rf::ptx {

std::string trim(const std::string& s);
std::vector<std::string> split(const std::string& s, char separator);
std::vector<std::string> words(const std::string& s);
// At commas outside of braces and brackets.
std::vector<std::string> split_operands(const std::string& s);
std::string hex(unsigned long long value);
// "rf::(anonymous namespace)::fill_kernel<float>(float*)" becomes "fill_kernel<float>".
std::string readable_name(const std::string& symbol);
std::string base_name(const std::string& path);

}  // namespace rf::ptx
