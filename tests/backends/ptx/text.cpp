#include "text.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <regex>

namespace rf::ptx {
namespace {

bool blank(char c) { return isspace(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string trim(const std::string& s) {
  size_t begin = 0, end = s.size();
  while (begin < end && blank(s[begin])) ++begin;
  while (end > begin && blank(s[end - 1])) --end;
  return s.substr(begin, end - begin);
}

std::vector<std::string> split(const std::string& s, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : s) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::string> words(const std::string& s) {
  std::vector<std::string> parts;
  bool inside = false;
  for (const char c : s) {
    if (blank(c)) {
      inside = false;
      continue;
    }
    if (!inside) parts.emplace_back();
    parts.back() += c;
    inside = true;
  }
  return parts;
}

std::vector<std::string> split_operands(const std::string& s) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (const char c : s) {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(trim(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!trim(part).empty()) parts.push_back(trim(part));
  return parts;
}

std::string hex(unsigned long long value) {
  char text[32];
  snprintf(text, sizeof(text), "0x%llx", value);
  return text;
}

std::string readable_name(const std::string& symbol) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : symbol;
  free(demangled);
  static const auto& noise = *new std::regex(
      R"(^void |\(anonymous namespace\)::|_GLOBAL__N__\w+::|rf::|ptx::|\((?:int|bool)\))");
  name = std::regex_replace(name, noise, "");
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    depth += (name[i] == '<') - (name[i] == '>');
    if (name[i] == '(' && depth == 0) return name.substr(0, i);
  }
  return name;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace rf::ptx
