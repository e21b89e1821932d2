// Python functions for the functions of the C API: binding<rf_op> is the PyMethodDef of one. Arrays
// (anything with a buffer), integers or None come in for pointers, numbers for the rest; the GIL is
// released; a bad status is an exception. By hand and not by pybind11's def(), whose code for
// functions of fifteen arguments takes a minute to compile and a microsecond to call.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "include/roarfast.h"

#ifdef RF_PTX  // the test backend that checks every access wants to know the arrays of a call
#include "call_arrays.h"
#else
namespace rf {
inline void begin_call(const char*) {}
inline void note_array(const void*, size_t, bool) {}
}  // namespace rf
#endif

namespace rf {

inline void raise_if(rf_status status) {
  if (status == RF_OK) return;
  const char* why = rf_last_error();
  if (status == RF_INVALID_ARGUMENT) throw pybind11::value_error(why);
  if (status == RF_UNSUPPORTED_DTYPE) throw pybind11::type_error(why);
  throw std::runtime_error(why);
}

// Other Python threads run while this lives. An object, so that the lock is held again before an
// exception (out of memory) becomes one of Python.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() { PyEval_RestoreThread(state_); }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

// The address behind a Python argument. An array must be C-contiguous; its caller keeps it alive.
inline void* pointer_from(PyObject* from, bool writable) {
  Py_buffer view{};
  if (PyLong_Check(from)) {
    view.buf = PyLong_AsVoidPtr(from);
  } else if (from != Py_None) {
    if (PyObject_GetBuffer(from, &view, PyBUF_SIMPLE) != 0) return nullptr;
    PyBuffer_Release(&view);
  }
  note_array(view.buf, static_cast<size_t>(view.len), writable);
  return view.buf;
}

// Leaves a Python error behind if `from` is not of the kind.
template <typename T>
T argument_from(PyObject* from) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<T>(pointer_from(from, !std::is_const_v<std::remove_pointer_t<T>>));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(PyFloat_AsDouble(from));
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return PyLong_AsUnsignedLongLong(from);
  } else {
    return static_cast<T>(PyLong_AsLongLong(from));
  }
}

template <typename Result, typename... Args, size_t... kIndex>
PyObject* call(const char* name, Result (*f)(Args...), PyObject* const* args,
               std::index_sequence<kIndex...>) {
  begin_call(name);
  const std::tuple<Args...> values{argument_from<Args>(args[kIndex])...};
  if (PyErr_Occurred()) return nullptr;
  if constexpr (std::is_same_v<Result, rf_status>) {
    rf_status status;
    {
      const ReleasedGil released;
      status = f(std::get<kIndex>(values)...);
    }
    raise_if(status);
    Py_RETURN_NONE;
  } else if constexpr (std::is_void_v<Result>) {
    f(std::get<kIndex>(values)...);
    Py_RETURN_NONE;
  } else {
    return PyLong_FromLongLong(f(std::get<kIndex>(values)...));
  }
}

template <typename Result, typename... Args>
PyObject* checked_call(const char* name, Result (*f)(Args...), PyObject* const* args,
                       Py_ssize_t count) {
  constexpr Py_ssize_t kCount = sizeof...(Args);
  if (count != kCount) {
    return PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", kCount, count);
  }
  try {
    return call(name, f, args, std::make_index_sequence<sizeof...(Args)>{});
  } catch (const pybind11::builtin_exception& e) {
    e.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

template <auto f>
inline const char* function_name = "";

template <auto f>
PyObject* python_function(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return checked_call(function_name<f>, f, args, count);
}

template <auto f>
void def(pybind11::module_& module, const char* name) {
  function_name<f> = name;
  static PyMethodDef method = {
      name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&python_function<f>)),
      METH_FASTCALL, nullptr};
  module.add_object(
      name, pybind11::reinterpret_steal<pybind11::object>(PyCFunction_New(&method, nullptr)));
}

}  // namespace rf
