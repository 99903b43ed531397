// The Python face of the device core, in raw CPython: pybind11 would double the build time.
#include "python_functions.h"

#include "generator.h"
#include "memory.h"
#include "ranked_model.h"
#include "registration.h"
#include "skipped_values.h"
#include "xla_device.h"

#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include <string>

namespace neuron {
namespace {

int register_kernels() {
  static const int count = register_boxed_kernels();
  return count;
}

PyObject* generator_of(int device) {
  return THPGenerator_initDefaultGenerator(default_generator(device));
}

bool set_integer(PyObject* dictionary, const char* key, int64_t value) {
  PyObject* number = PyLong_FromLongLong(value);
  const bool ok = number != nullptr && PyDict_SetItemString(dictionary, key, number) == 0;
  Py_XDECREF(number);
  return ok;
}

// Of all allocations, and with a prefix those of the small and of the large ones.
PyObject* memory_statistics_of(int device) {
  PyObject* result = PyDict_New();
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

PyObject* get_skips_values_of(PyObject*, PyObject* argument) {
  if (!THPVariable_Check(argument)) {
    PyErr_SetString(PyExc_TypeError, "A tensor is expected.");
    return nullptr;
  }
  return PyBool_FromLong(skips_values_of(THPVariable_Unpack(argument)) ? 1 : 0);
}

}  // namespace

PyMethodDef device_functions[] = {
    {"register_kernels", call<register_kernels>, METH_NOARGS, nullptr},
    {"register_xla_device", call<register_xla_device>, METH_NOARGS, nullptr},
    {"register_ranked_model", call<register_ranked_model>, METH_NOARGS, nullptr},
    {"device_count", call<device_count>, METH_NOARGS, nullptr},
    {"set_default_device_count", call_with_number<set_default_device_count>, METH_O, nullptr},
    {"current_device", call<current_device>, METH_NOARGS, nullptr},
    {"exchange_device", call_with_number<exchange_current_device>, METH_O, nullptr},
    {"choose_device", call_with_number<choose_device>, METH_O, nullptr},
    {"default_generator", call_on_device<generator_of>, METH_O, nullptr},
    {"memory_statistics", call_on_device<memory_statistics_of>, METH_O, nullptr},
    {"reset_peak_memory", call_on_device<reset_peak_statistics>, METH_O, nullptr},
    {"reset_accumulated_memory", call_on_device<reset_accumulated_statistics>, METH_O, nullptr},
    {"memory_holders", get_memory_holders, METH_VARARGS, nullptr},
    {"buffer_number", get_buffer_number, METH_O, nullptr},
    {"set_memory_limit", call_with_number<set_memory_limit>, METH_O, nullptr},
    {"memory_limit", call<memory_limit>, METH_NOARGS, nullptr},
    {"skips_values_of", get_skips_values_of, METH_O, nullptr},
    {"values_are_skipped", call<values_are_skipped>, METH_NOARGS, nullptr},
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
