// The entry point of one module. The bindings are compiled once for all modules (pybind11's headers
// take seconds each time); what differs, the module's name, is here.
#include "python/module.h"

#include <Python.h>

#define RF_JOIN2(a, b) a##b
#define RF_JOIN(a, b) RF_JOIN2(a, b)
#define RF_TEXT2(a) #a
#define RF_TEXT(a) RF_TEXT2(a)

extern "C" __attribute__((visibility("default"))) PyObject* RF_JOIN(PyInit_, RF_MODULE)(void) {
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(&rf::exec_module)},
                                     {0, nullptr}};
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   RF_TEXT(RF_MODULE),
                                   nullptr,
                                   0,
                                   nullptr,
                                   slots,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  return PyModuleDef_Init(&definition);
}
