#include "python_api.h"

#include <pybind11/stl.h>

#include <cstring>
#include <utility>

#include "python/python_call.h"
#include "runtime.h"
#include "selftest.h"
#include "text.h"

namespace py = pybind11;

namespace rf::ptx {
namespace {

py::dict traffic_dict(const ArrayTraffic& t) {
  return py::dict(py::arg("requests") = t.requests, py::arg("bytes") = t.bytes,
                  py::arg("sectors") = t.sectors, py::arg("ideal") = t.ideal, py::arg("l2") = t.l2,
                  py::arg("unique") = t.unique);
}

py::dict sums_dict(const InstCounters& c) {
  return py::dict(py::arg("warps") = c.warps, py::arg("lanes") = c.lanes,
                  py::arg("sectors") = c.sectors, py::arg("wavefronts") = c.wavefronts,
                  py::arg("bytes") = c.bytes, py::arg("divergent") = c.divergent);
}

void accumulate(InstCounters& to, const InstCounters& c) {
  to.warps += c.warps, to.lanes += c.lanes, to.sectors += c.sectors;
  to.wavefronts += c.wavefronts, to.bytes += c.bytes, to.divergent += c.divergent;
}

py::dict launch_dict(const LaunchCounters& l) {
  InstCounters by_class[kClasses];
  std::map<std::string, InstCounters> by_line;
  for (size_t pc = 0; pc < l.inst.size(); ++pc) {
    accumulate(by_class[static_cast<int>(l.kernel->code[pc].cls)], l.inst[pc]);
    if (l.inst[pc].warps) accumulate(by_line[l.module->place_of(l.kernel->origin[pc])], l.inst[pc]);
  }
  py::dict classes, lines;
  for (int c = 0; c < kClasses; ++c) classes[kClassNames[c]] = sums_dict(by_class[c]);
  for (const auto& [place, sums] : by_line) lines[py::str(place)] = sums_dict(sums);
  py::list arrays;
  for (const ArrayCounters& a : l.arrays)
    arrays.append(py::dict(py::arg("argument") = a.argument, py::arg("load") = traffic_dict(a.load),
                           py::arg("store") = traffic_dict(a.store)));
  py::dict d;
  d["kernel"] = l.kernel->name;
  d["symbol"] = l.kernel->symbol;
  d["function"] = l.function;
  d["grid"] = py::make_tuple(l.grid.x, l.grid.y, l.grid.z);
  d["block"] = py::make_tuple(l.block.x, l.block.y, l.block.z);
  d["static_shared"] = l.kernel->shared_bytes;
  d["dynamic_shared"] = l.dynamic_shared;
  d["classes"] = classes;
  d["lines"] = lines;
  d["arrays"] = arrays;
  return d;
}

// What was counted since the last call, with `traffic` on.
py::list take_launches() {
  py::list all;
  for (const LaunchCounters& l : std::exchange(Runtime::get().recorded, {}))
    all.append(launch_dict(l));
  return all;
}

void set_options(const py::kwargs& given) {
  Options& o = Runtime::get().options;
  for (const auto& [key, value] : given) {
    const std::string name = py::cast<std::string>(key);
    if (name == "seed") {
      o.seed = py::cast<uint32_t>(value);
    } else if (name == "races") {
      o.races = py::cast<bool>(value);
    } else if (name == "traffic") {
      o.traffic = py::cast<bool>(value);
    } else if (name == "grid_cap") {
      o.grid_cap = py::cast<uint32_t>(value);
    } else if (name == "l1_bytes") {
      o.l1_bytes = py::cast<int>(value);
    } else if (name == "most_instructions") {
      o.most_instructions = py::cast<uint64_t>(value);
    } else {
      throw py::type_error("no option is called " + name);
    }
  }
}

py::dict get_options() {
  const Options& o = Runtime::get().options;
  return py::dict(py::arg("seed") = o.seed, py::arg("races") = o.races,
                  py::arg("traffic") = o.traffic, py::arg("grid_cap") = o.grid_cap,
                  py::arg("l1_bytes") = o.l1_bytes,
                  py::arg("most_instructions") = o.most_instructions);
}

// Every kernel of the module: how often it was launched, and per instruction where it comes from,
// its text, whether a warp executed it, and whether the interpreter knows it.
py::list kernels() {
  Runtime& r = Runtime::get();
  py::list all;
  for (LoadedModule* module : r.modules()) {
    for (const auto& kernel : module->parsed().kernels) {
      const KernelTotals& total = r.totals[kernel.get()];
      py::list instructions;
      for (size_t pc = 0; pc < kernel->code.size(); ++pc) {
        const Origin& origin = kernel->origin[pc];
        instructions.append(
            py::make_tuple(module->parsed().place_of(origin), origin.text,
                           total.executed.empty() ? uint64_t{0} : total.executed[pc],
                           kernel->code[pc].run != nullptr));
      }
      all.append(py::dict(py::arg("kernel") = kernel->name, py::arg("symbol") = kernel->symbol,
                          py::arg("launches") = total.launches,
                          py::arg("instructions") = instructions));
    }
  }
  return all;
}

LoadedModule& module_of(const std::string& symbol) {
  LoadedModule* module = Runtime::get().module_of(symbol);
  if (module == nullptr) throw py::value_error("no kernel has the symbol " + symbol);
  return *module;
}

// Barriers at a source line do nothing (those that also reduce still do that) until restored:
// what a forgotten __syncthreads() would be. Returns how many instructions that are.
std::vector<std::pair<Inst*, Inst>> disabled;

int disable_barriers(const std::string& place) {
  int found = 0;
  for (LoadedModule* module : Runtime::get().modules()) {
    for (const auto& kernel : module->parsed().kernels) {
      for (size_t pc = 0; pc < kernel->code.size(); ++pc) {
        Inst& inst = kernel->code[pc];
        const bool barrier = inst.kind == Inst::Kind::kBarrier;
        if (!barrier || module->parsed().place_of(kernel->origin[pc]) != place) continue;
        disabled.emplace_back(&inst, inst);
        if (inst.reduction == Inst::Reduction::kNone) {
          inst.kind = Inst::Kind::kPlain;
        } else {
          inst.unordered = true;
        }
        ++found;
      }
    }
  }
  return found;
}

void restore_barriers() {
  for (const auto& [inst, saved] : disabled) *inst = saved;
  disabled.clear();
}

// Runs a kernel of a PTX text. Arguments are arrays (writable buffers) or numbers.
void run_text(const std::string& text, const std::string& name, py::tuple grid, py::tuple block,
              const py::list& arguments, size_t dynamic_bytes) {
  const std::unique_ptr<Module> module = parse(text);
  Kernel* kernel = nullptr;
  for (const auto& k : module->kernels) {
    if (k->symbol == name) kernel = k.get();
  }
  if (kernel == nullptr || arguments.size() != kernel->params.size())
    throw py::value_error("no kernel " + name + " with so many arguments in the text");
  std::vector<uint8_t> params(kernel->param_bytes);
  call_memory().begin_call("ptx_run_text");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Param& p = kernel->params[i];
    if (py::isinstance<py::int_>(arguments[i])) {
      const int64_t v = py::cast<int64_t>(arguments[i]);
      memcpy(params.data() + p.offset, &v, p.bytes);
      continue;
    }
    const py::buffer_info info = py::cast<py::buffer>(arguments[i]).request();
    const size_t bytes = static_cast<size_t>(info.size * info.itemsize);
    call_memory().add(info.ptr, bytes, !info.readonly);
    memcpy(params.data() + p.offset, &info.ptr, sizeof(info.ptr));
    // A test may well read what it wrote itself.
    for (Array& array : call_memory().arrays()) array.unwritten.clear();
  }
  const auto dim = [](const py::tuple& t) {
    return Dim3{py::cast<uint32_t>(t[0]), py::cast<uint32_t>(t[1]), py::cast<uint32_t>(t[2])};
  };
  const auto forget = [&] {  // the module ends here
    Runtime::get().totals.erase(kernel);
    Runtime::get().recorded.clear();
  };
  try {
    Runtime::get().run(*module, *kernel, dim(grid), dim(block), std::move(params), dynamic_bytes,
                       kDefaultShared - kernel->shared_bytes);
  } catch (...) {
    forget();
    throw;
  }
  forget();
}

}  // namespace

void bind(py::module_& m) {
  m.def("ptx_set_options", &set_options);
  m.def("ptx_get_options", &get_options);
  m.def("ptx_take_launches", &take_launches);
  m.def("ptx_kernels", &kernels);
  // The PTX of the file that a kernel is in; and another text in its place, for mutants.
  m.def("ptx_text", [](const std::string& symbol) { return module_of(symbol).text; });
  m.def("ptx_replace_text", [](const std::string& symbol, const std::string& text) {
    Runtime::get().replace_text(&module_of(symbol), text);
  });
  m.def("ptx_disable_barriers", &disable_barriers);
  m.def("ptx_restore_barriers", &restore_barriers);
  m.def("ptx_run_text", &run_text, py::arg("text"), py::arg("name"), py::arg("grid"),
        py::arg("block"), py::arg("arguments"), py::arg("dynamic_bytes") = 0);
  m.def("ptx_arch", [] { return RF_PTX_ARCH; });
  m.def("ptx_selftest_names", &selftest_names);
  m.def("ptx_selftest", [](const std::string& name) { raise_if(selftest(name)); });
}

}  // namespace rf::ptx
