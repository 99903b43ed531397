// What the files of the Python face share.
#pragma once

#include <Python.h>

#include "device.h"

#include <c10/util/Exception.h>

#include <exception>
#include <type_traits>

namespace neuron {

// Each file gives the extension module its functions.
extern PyMethodDef device_functions[];
extern PyMethodDef collective_functions[];
extern PyMethodDef graph_functions[];
extern PyMethodDef memory_functions[];
extern PyMethodDef recorder_functions[];
extern PyMethodDef activity_functions[];
extern PyMethodDef sampler_functions[];
extern PyMethodDef unseen_functions[];

// Runs `body`, turning a C++ exception into a RuntimeError.
template <class Body>
PyObject* guarded(Body body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

inline PyObject* none() {
  Py_RETURN_NONE;
}

template <class Value>
PyObject* to_python(Value value) {
  if constexpr (std::is_same_v<Value, PyObject*>) {
    return value;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return PyBool_FromLong(value);
  } else if constexpr (std::is_unsigned_v<Value>) {
    return PyLong_FromUnsignedLongLong(value);
  } else {
    return PyLong_FromLongLong(value);
  }
}

template <class Function, class... Arguments>
PyObject* answer(Function function, Arguments... arguments) {
  return guarded([&]() -> PyObject* {
    if constexpr (std::is_void_v<decltype(function(arguments...))>) {
      function(arguments...);
      return none();
    } else {
      return to_python(function(arguments...));
    }
  });
}

// Functions of the module made of plain ones: of no argument, of an integer, of the index of a device.
template <auto function>
PyObject* call(PyObject*, PyObject*) {
  return answer(function);
}

template <auto function>
PyObject* call_with_number(PyObject*, PyObject* argument) {
  const long long number = PyLong_AsLongLong(argument);
  return number == -1 && PyErr_Occurred() != nullptr ? nullptr : answer(function, number);
}

template <auto function>
auto checked(int64_t device) {
  check_device(device);
  return function(static_cast<int>(device));
}

template <auto function>
PyObject* call_on_device(PyObject* self, PyObject* argument) {
  return call_with_number<checked<function>>(self, argument);
}

}  // namespace neuron
