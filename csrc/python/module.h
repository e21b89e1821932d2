// What module.cpp (one per module) calls and bindings.cpp (one for all) defines.
#pragma once

struct _object;  // NOLINT(bugprone-reserved-identifier): the name that CPython has for PyObject

namespace rf {

// Adds the functions to a new module: 0, or -1 with a Python exception set.
int exec_module(_object* module);

}  // namespace rf
