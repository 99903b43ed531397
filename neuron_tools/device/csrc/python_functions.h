// What the files of the Python face share.
#pragma once

#include <Python.h>

#include <c10/util/Exception.h>

#include <exception>

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

}  // namespace neuron
