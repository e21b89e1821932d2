#include "runtime.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "call_arrays.h"

namespace rf {

void begin_call(const char* function) { ptx::call_memory().begin_call(function); }
void note_array(const void* data, size_t bytes, bool writable) {
  ptx::call_memory().add(data, bytes, writable);
}

namespace ptx {

DeviceProfile device() { return profile_of(RF_PTX_ARCH); }

CallMemory& call_memory() {
  static thread_local CallMemory memory;
  return memory;
}

// A fat binary is a header and entries, of which kind 1 is PTX.
std::string ptx_text_of(const uint8_t* data) {
  uint32_t magic;
  uint16_t header_bytes;
  uint64_t bytes;
  memcpy(&magic, data, 4), memcpy(&header_bytes, data + 6, 2), memcpy(&bytes, data + 8, 8);
  if (magic != 0xba55ed50u) throw Unsupported("not a fat binary");
  const uint8_t *entry = data + header_bytes, *end = entry + bytes;
  while (entry < end) {
    uint16_t kind;
    uint32_t entry_header;
    uint64_t payload;
    memcpy(&kind, entry, 2), memcpy(&entry_header, entry + 4, 4), memcpy(&payload, entry + 8, 8);
    if (kind == 1) {
      const char* text = reinterpret_cast<const char*>(entry + entry_header);
      std::string all(text, strnlen(text, payload));
      if (all.find(".version") == std::string::npos)
        throw Unsupported("compressed PTX: compile with --no-compress");
      return all;
    }
    entry += entry_header + payload;
  }
  throw Unsupported("no PTX in the fat binary: compile with code=compute_XX");
}

const Module& LoadedModule::parsed() {
  if (!program) program = parse(text);
  return *program;
}

Kernel& LoadedKernel::parsed() {
  if (kernel_ != nullptr) return *kernel_;
  for (const auto& kernel : module->parsed().kernels) {
    if (kernel->symbol == symbol) kernel_ = kernel.get();
  }
  if (kernel_ == nullptr) throw Unsupported("no kernel " + symbol + " in its PTX");
  return *kernel_;
}

int LoadedKernel::allowed_dynamic() {
  return dynamic_allowance >= 0 ? dynamic_allowance : kDefaultShared - parsed().shared_bytes;
}

Runtime& Runtime::get() {
  static Runtime* runtime = [] {  // never destroyed: modules unregister late
    auto* made = new Runtime;
    if (const char* seed = getenv("ROARFAST_PTX_SEED"))
      made->options.seed = static_cast<uint32_t>(strtoul(seed, nullptr, 10));
    if (const char* cap = getenv("ROARFAST_PTX_GRID_CAP"))
      made->options.grid_cap = static_cast<uint32_t>(strtoul(cap, nullptr, 10));
    return made;
  }();
  return *runtime;
}

LoadedModule* Runtime::load(const uint8_t* fat_binary) {
  auto module = std::make_unique<LoadedModule>();
  try {
    module->text = ptx_text_of(fat_binary);
  } catch (const std::exception& e) {
    fprintf(stderr, "roarfast ptx backend: %s\n", e.what());
  }
  modules_.push_back(std::move(module));
  return modules_.back().get();
}

void Runtime::add_kernel(LoadedModule* module, const void* host_function, const char* symbol) {
  LoadedKernel& kernel = kernels_[host_function];
  kernel.module = module;
  kernel.symbol = symbol;
}

LoadedKernel* Runtime::find(const void* host_function) {
  const auto found = kernels_.find(host_function);
  return found == kernels_.end() ? nullptr : &found->second;
}

std::vector<LoadedModule*> Runtime::modules() {
  std::vector<LoadedModule*> all;
  for (const auto& module : modules_) {
    if (!module->text.empty()) all.push_back(module.get());
  }
  return all;
}

LoadedModule* Runtime::module_of(const std::string& symbol) {
  for (const auto& [host_function, kernel] : kernels_) {
    if (kernel.symbol == symbol) return kernel.module;
  }
  return nullptr;
}

void Runtime::replace_text(LoadedModule* module, const std::string& text) {
  std::unique_ptr<Module> parsed = parse(text);  // throws before anything has changed
  recorded.clear();
  if (module->program) {
    for (const auto& kernel : module->program->kernels) totals.erase(kernel.get());
  }
  module->text = text;
  module->program = std::move(parsed);
  for (auto& [host_function, kernel] : kernels_) {
    if (kernel.module == module) kernel.forget();
  }
}

void Runtime::launch(LoadedKernel& loaded, Dim3 grid, Dim3 block, void** arguments,
                     size_t dynamic_bytes) {
  Kernel& kernel = loaded.parsed();
  std::vector<uint8_t> params(kernel.param_bytes);
  for (size_t i = 0; i < kernel.params.size(); ++i)
    memcpy(params.data() + kernel.params[i].offset, arguments[i], kernel.params[i].bytes);
  run(loaded.module->parsed(), kernel, grid, block, std::move(params), dynamic_bytes,
      loaded.allowed_dynamic());
}

void Runtime::run(const Module& module, Kernel& kernel, Dim3 grid, Dim3 block,
                  std::vector<uint8_t> params, size_t dynamic_bytes, int allowed_dynamic) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Machine m;
  m.kernel = &kernel, m.module = &module;
  m.memory = &call_memory();
  m.options = options;
  m.params = std::move(params);
  m.grid = grid, m.block_dim = block;
  m.dynamic_bytes = static_cast<uint32_t>(dynamic_bytes);
  m.allowed_dynamic = allowed_dynamic;
  m.epoch = epoch_;
  KernelTotals& total = totals[&kernel];
  total.executed.resize(kernel.code.size());
  try {
    m.launch();
  } catch (...) {
    epoch_ = m.epoch;
    throw;
  }
  epoch_ = m.epoch;
  ++total.launches;
  for (size_t pc = 0; pc < kernel.code.size(); ++pc)
    total.executed[pc] += m.counters.inst[pc].warps;
  if (options.traffic) recorded.push_back(std::move(m.counters));
}

}  // namespace ptx
}  // namespace rf
