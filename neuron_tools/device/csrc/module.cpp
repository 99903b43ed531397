// The Python face of the device core, in raw CPython: pybind11 would double the build time.
#include "python_functions.h"

#include "device.h"
#include "generator.h"
#include "memory.h"
#include "registration.h"
#include "skipped_values.h"
#include "xla_device.h"

#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include <string>

namespace neuron {
namespace {

// A device index argument; -1 with an exception set where it is none of ours.
int parse_device(PyObject* argument) {
  const long index = PyLong_AsLong(argument);
  if (index == -1 && PyErr_Occurred() != nullptr) {
    return -1;
  }
  if (index < 0 || index >= device_count()) {
    PyErr_Format(PyExc_RuntimeError, "There is no device neuron:%ld: this process has %d NeuronCore(s).", index,
                 device_count());
    return -1;
  }
  return static_cast<int>(index);
}

PyObject* register_kernels(PyObject*, PyObject*) {
  static int count = 0;
  return guarded([] {
    if (count == 0) {
      count = register_boxed_kernels();
    }
    return PyLong_FromLong(count);
  });
}

PyObject* register_xla(PyObject*, PyObject*) {
  return guarded([] {
    register_xla_device();
    Py_RETURN_NONE;
  });
}

PyObject* get_device_count(PyObject*, PyObject*) {
  return PyLong_FromLong(device_count());
}

PyObject* set_default_count(PyObject*, PyObject* argument) {
  const long count = PyLong_AsLong(argument);
  if (count == -1 && PyErr_Occurred()) {
    return nullptr;
  }
  set_default_device_count(static_cast<int>(count));
  Py_RETURN_NONE;
}

PyObject* get_current_device(PyObject*, PyObject*) {
  return PyLong_FromLong(current_device());
}

PyObject* exchange_device(PyObject*, PyObject* argument) {
  const long index = PyLong_AsLong(argument);
  if (index == -1 && PyErr_Occurred() != nullptr) {
    return nullptr;
  }
  return guarded([index] { return PyLong_FromLong(exchange_current_device(static_cast<int>(index))); });
}

PyObject* get_default_generator(PyObject*, PyObject* argument) {
  const int device = parse_device(argument);
  return device < 0 ? nullptr : THPGenerator_initDefaultGenerator(default_generator(device));
}

bool set_integer(PyObject* dictionary, const char* key, int64_t value) {
  PyObject* number = PyLong_FromLongLong(value);
  const bool ok = number != nullptr && PyDict_SetItemString(dictionary, key, number) == 0;
  Py_XDECREF(number);
  return ok;
}

// Of all allocations, and with a prefix those of the small and of the large ones.
PyObject* get_memory_statistics(PyObject*, PyObject* argument) {
  const int device = parse_device(argument);
  PyObject* result = device < 0 ? nullptr : PyDict_New();
  if (result == nullptr) {
    return nullptr;
  }
  static const char* const prefixes[] = {"", "small_", "large_"};
  bool ok = true;
  for (int pool = 0; pool < kMemoryPools; ++pool) {
    const auto statistics = memory_statistics(device, static_cast<MemoryPool>(pool));
    const auto set = [&](const char* key, int64_t value) {
      ok = ok && set_integer(result, (std::string(prefixes[pool]) + key).c_str(), value);
    };
    set("allocated_bytes", statistics.allocated_bytes);
    set("peak_bytes", statistics.peak_bytes);
    set("total_allocated_bytes", statistics.total_allocated_bytes);
    set("total_freed_bytes", statistics.total_freed_bytes);
    set("live_allocations", statistics.live_allocations);
    set("peak_allocations", statistics.peak_allocations);
    set("allocation_count", statistics.allocation_count);
    set("free_count", statistics.free_count);
    set("out_of_memory_count", statistics.out_of_memory_count);
  }
  if (!ok) {
    Py_DECREF(result);
    return nullptr;
  }
  return result;
}

PyObject* reset_peak_memory(PyObject*, PyObject* argument) {
  const int device = parse_device(argument);
  if (device < 0) {
    return nullptr;
  }
  reset_peak_statistics(device);
  return none();
}

PyObject* reset_accumulated_memory(PyObject*, PyObject* argument) {
  const int device = parse_device(argument);
  if (device < 0) {
    return nullptr;
  }
  reset_accumulated_statistics(device);
  return none();
}

PyObject* get_memory_holders(PyObject*, PyObject* arguments) {
  int device = 0;
  Py_ssize_t most = 0;
  if (!PyArg_ParseTuple(arguments, "in", &device, &most)) {
    return nullptr;
  }
  return guarded([&] {
    const std::string text = describe_holders(device, static_cast<size_t>(most));
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

PyObject* get_buffer_number(PyObject*, PyObject* argument) {
  const auto* storage = static_cast<const c10::StorageImpl*>(PyLong_AsVoidPtr(argument));
  if (storage == nullptr) {
    return PyErr_Occurred() != nullptr ? nullptr : PyLong_FromLong(0);
  }
  const Buffer* buffer = buffer_of(storage);
  return PyLong_FromLongLong(buffer == nullptr ? 0 : buffer->ordinal);
}

PyObject* set_limit(PyObject*, PyObject* argument) {
  const long long bytes = PyLong_AsLongLong(argument);
  if (bytes == -1 && PyErr_Occurred() != nullptr) {
    return nullptr;
  }
  set_memory_limit(bytes);
  return none();
}

PyObject* get_limit(PyObject*, PyObject*) {
  return PyLong_FromLongLong(memory_limit());
}

PyObject* get_values_are_skipped(PyObject*, PyObject*) {
  return PyBool_FromLong(values_are_skipped() ? 1 : 0);
}

PyObject* get_skips_values_of(PyObject*, PyObject* argument) {
  if (!THPVariable_Check(argument)) {
    PyErr_SetString(PyExc_TypeError, "A tensor is expected.");
    return nullptr;
  }
  return PyBool_FromLong(skips_values_of(THPVariable_Unpack(argument)) ? 1 : 0);
}

}  // namespace

PyMethodDef device_functions[] = {
    {"register_kernels", register_kernels, METH_NOARGS, nullptr},
    {"register_xla_device", register_xla, METH_NOARGS, nullptr},
    {"device_count", get_device_count, METH_NOARGS, nullptr},
    {"set_default_device_count", set_default_count, METH_O, nullptr},
    {"current_device", get_current_device, METH_NOARGS, nullptr},
    {"exchange_device", exchange_device, METH_O, nullptr},
    {"default_generator", get_default_generator, METH_O, nullptr},
    {"memory_statistics", get_memory_statistics, METH_O, nullptr},
    {"reset_peak_memory", reset_peak_memory, METH_O, nullptr},
    {"reset_accumulated_memory", reset_accumulated_memory, METH_O, nullptr},
    {"memory_holders", get_memory_holders, METH_VARARGS, nullptr},
    {"buffer_number", get_buffer_number, METH_O, nullptr},
    {"set_memory_limit", set_limit, METH_O, nullptr},
    {"memory_limit", get_limit, METH_NOARGS, nullptr},
    {"skips_values_of", get_skips_values_of, METH_O, nullptr},
    {"values_are_skipped", get_values_are_skipped, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_neuron_device", nullptr, -1, device_functions};

}  // namespace
}  // namespace neuron

PyMODINIT_FUNC PyInit__neuron_device() {
  PyObject* module = PyModule_Create(&neuron::definition);
  for (auto* functions : {neuron::recorder_functions, neuron::activity_functions, neuron::collective_functions,
                          neuron::graph_functions, neuron::memory_functions, neuron::sampler_functions, neuron::unseen_functions}) {
    if (module != nullptr && PyModule_AddFunctions(module, functions) < 0) {
      Py_CLEAR(module);
    }
  }
  return module;
}
