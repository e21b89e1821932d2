// Kernels are local symbols (anonymous namespaces), which dladdr does not know: they are looked up
// in the symbol table of the module's file. Slow, but only done to word an error.
#include "symbols.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#if defined(__linux__) && defined(__LP64__)
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#endif

namespace rf::simt {

namespace {

#if defined(__linux__) && defined(__LP64__)
std::vector<char> read_file(const char* path) {
  std::vector<char> bytes;
  FILE* file = fopen(path, "rb");
  if (file == nullptr) return bytes;
  fseek(file, 0, SEEK_END);
  bytes.resize(static_cast<size_t>(ftell(file)));
  fseek(file, 0, SEEK_SET);
  if (fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) bytes.clear();
  fclose(file);
  return bytes;
}

std::string find_symbol(const void* address) {
  Dl_info module;
  if (dladdr(address, &module) == 0) return "";
  const std::vector<char> file = read_file(module.dli_fname);
  if (file.size() < sizeof(Elf64_Ehdr)) return "";
  const size_t offset = static_cast<size_t>(static_cast<const char*>(address) -
                                            static_cast<const char*>(module.dli_fbase));
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(file.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(file.data() + sections[i].sh_offset);
    const char* names = file.data() + sections[sections[i].sh_link].sh_offset;
    for (size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s) {
      if (symbols[s].st_value == offset && ELF64_ST_TYPE(symbols[s].st_info) == STT_FUNC) {
        return names + symbols[s].st_name;
      }
    }
  }
  return "";
}

// "void rf::(anonymous namespace)::tile_kernel<float, 32>(float*)" -> "rf::tile_kernel<float, 32>"
std::string readable(const std::string& symbol) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (demangled == nullptr) return symbol;
  std::string name = demangled;
  free(demangled);
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = name.find(anonymous)) != std::string::npos;)
    name.erase(at, anonymous.size());
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0) return name.substr(0, i);
  }
  return name;
}
#endif

}  // namespace

std::string kernel_name(const void* kernel) {
#if defined(__linux__) && defined(__LP64__)
  const std::string symbol = find_symbol(kernel);
  if (!symbol.empty()) return readable(symbol);
#endif
  char text[40];
  snprintf(text, sizeof(text), "at %p", kernel);
  return text;
}

std::string source_line([[maybe_unused]] const void* code) {
#if defined(__linux__) && defined(__LP64__)
  Dl_info module;
  if (code == nullptr || dladdr(code, &module) == 0) return "";
  const long offset =
      static_cast<const char*>(code) - static_cast<const char*>(module.dli_fbase) - 1;
  char command[600], line[600] = "";
  snprintf(command, sizeof(command), "addr2line -e '%s' 0x%lx 2>/dev/null", module.dli_fname,
           offset);
  FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return "";
  const bool found = fgets(line, sizeof(line), pipe) != nullptr;
  pclose(pipe);
  std::string text = found ? line : "";
  text = text.substr(0, text.find_first_of(" \n"));
  text = text.substr(text.rfind('/') + 1);
  return text.empty() || text[0] == '?' ? "" : text;
#else
  return "";
#endif
}

}  // namespace rf::simt
