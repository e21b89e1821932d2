// Python bindings of a backend library: one object file for the modules _cpu_base, _cpu_v3 and
// _cuda; _simt and _ptx_80 … compile it with what the tests need.
#include "cpu/peer_random.h"
#include "python/cpu_features.h"
#include "python/huge_pages.h"
#include "python/module.h"
#include "python/python_call.h"

#ifdef RF_PTX
#include "python_api.h"
#endif
#ifdef RF_SIMT
#include "block.h"
#include "device.h"
#include "selftest.h"
#include "sweep.h"
#endif

namespace py = pybind11;

#define RF_DEF(op) rf::def<rf_##op>(m, #op)

namespace {

void bind(py::module_& m) {
  m.def("best_simd_level", &rf::best_simd_level);
  m.def("advise_huge_pages", &rf::advise_huge_pages);
  m.def("backend_name", &rf_backend_name);
  m.def("build_info", &rf_build_info);
  if (rf_numpy_normals != nullptr) {  // roarfast.compat, in the CPU modules only
    RF_DEF(numpy_normals);
    RF_DEF(torch_normals);
    RF_DEF(removed_pixels_float32);
    RF_DEF(removed_pixels_float64);
    RF_DEF(mark_pixels);
    RF_DEF(add_in_order_float32);
    RF_DEF(add_in_order_float64);
    RF_DEF(add_at_float32);
    RF_DEF(add_at_float64);
  }
  RF_DEF(set_num_threads);
  RF_DEF(get_num_threads);

#ifdef RF_PTX  // the PTX interpreter: tests/backends/ptx/README.md
  rf::ptx::bind(m);
#endif
#ifdef RF_SIMT  // the emulator: tests/backends/simt/README.md
  m.def("simt_set_seed", &rf::simt::set_seed);
  m.def("simt_get_seed", &rf::simt::get_seed);
  m.def("simt_selftest_names", &rf::simt::selftest_names);
  m.def(
      "simt_selftest", [](const char* name) { rf::raise_if(rf::simt::selftest(name)); },
      py::call_guard<py::gil_scoped_release>());
  m.def("simt_devices", &rf::simt::device_names);
  m.def("simt_device", [] { return rf::simt::device().name; });
  m.def("simt_set_device", &rf::simt::set_device);
  m.def("simt_sweep_ops", &rf::simt::sweep_ops);
  m.def(
      "simt_sweep",
      [](const char* op, const char* device, int64_t side) {
        int64_t calls = 0;
        rf::raise_if(rf::simt::sweep(op, device, side, &calls));
        return calls;
      },
      py::call_guard<py::gil_scoped_release>());
#endif

  RF_DEF(total_variation);
  RF_DEF(total_variation_workspace_bytes);
  RF_DEF(gaussian_filter);
  RF_DEF(gaussian_filter_workspace_bytes);
  RF_DEF(maximum_filter);
  RF_DEF(maximum_filter_workspace_bytes);
  RF_DEF(sobel);

  RF_DEF(gather_batch);
  RF_DEF(gather_batch_resized);
  RF_DEF(philox_normal);
  RF_DEF(impute_linear);
  RF_DEF(impute_linear_workspace_bytes);
  RF_DEF(code_sums);
  RF_DEF(distance_transform);
  RF_DEF(distance_transform_workspace_bytes);
  RF_DEF(mask_geometry);
  RF_DEF(mask_geometry_workspace_bytes);
  RF_DEF(percentile);
  RF_DEF(percentile_workspace_bytes);
  RF_DEF(removal_mask);
  RF_DEF(removal_mask_workspace_bytes);
  RF_DEF(rank_codes);
  RF_DEF(rank_codes_workspace_bytes);
  RF_DEF(removed_fraction);
  RF_DEF(fill);
  RF_DEF(remove);
  RF_DEF(remove_workspace_bytes);
  RF_DEF(pixel_random);
  RF_DEF(block_random);
}

}  // namespace

int rf::exec_module(PyObject* module) {
  try {
    auto m = py::reinterpret_borrow<py::module_>(module);
    bind(m);
    return 0;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ImportError, error.what());
  }
  return -1;
}
