// The process: modules that nvcc's host code registered, their kernels, options, and what was
// counted. cuda_api.cpp is the C interface to it that kernels are launched by, python_api.cpp the
// one for tests.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "machine.h"

namespace rf::ptx {

struct LoadedModule {
  std::string text;
  std::unique_ptr<Module> program;  // parsed when first needed
  const Module& parsed();
};

struct LoadedKernel {
  LoadedModule* module = nullptr;
  std::string symbol;
  int dynamic_allowance = -1;  // cudaFuncAttributeMaxDynamicSharedMemorySize; -1: the default
  Kernel& parsed();
  int allowed_dynamic();                // bytes
  void forget() { kernel_ = nullptr; }  // its module has another text

 private:
  Kernel* kernel_ = nullptr;
};

// Of all launches of a kernel in this process.
struct KernelTotals {
  uint64_t launches = 0;
  std::vector<uint64_t> executed;  // per instruction, by warps
};

class Runtime {
 public:
  static Runtime& get();

  // ---- what nvcc's host code does
  LoadedModule* load(const uint8_t* fat_binary);
  void add_kernel(LoadedModule* module, const void* host_function, const char* symbol);
  LoadedKernel* find(const void* host_function);  // null: not a kernel
  void launch(LoadedKernel& kernel, Dim3 grid, Dim3 block, void** arguments, size_t dynamic_bytes);

  // ---- for tests
  Options options;
  std::vector<LaunchCounters> recorded;  // while options.traffic
  std::map<const Kernel*, KernelTotals> totals;
  std::vector<LoadedModule*> modules();                // those with kernels
  LoadedModule* module_of(const std::string& symbol);  // of a kernel; null: there is none
  void replace_text(LoadedModule* module, const std::string& text);
  void run(const Module& module, Kernel& kernel, Dim3 grid, Dim3 block, std::vector<uint8_t> params,
           size_t dynamic_bytes, int allowed_dynamic);

 private:
  std::mutex mutex_;  // launches take turns
  std::vector<std::unique_ptr<LoadedModule>> modules_;
  std::map<const void*, LoadedKernel> kernels_;
  uint32_t epoch_ = 0;
};

DeviceProfile device();     // of the architecture this module was compiled for
CallMemory& call_memory();  // of the calling thread
std::string ptx_text_of(const uint8_t* fat_binary);  // throws Unsupported

}  // namespace rf::ptx
