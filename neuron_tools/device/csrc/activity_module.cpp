// The Python face of the simulated driver's counters.
#include "python_functions.h"

#include "activity.h"
#include "device.h"
#include "memory.h"
#include "python_callbacks.h"
#include "timeline.h"

namespace neuron {
namespace {

PyObject* as_bytes(const int64_t* values, size_t count) {
  return PyBytes_FromStringAndSize(
      reinterpret_cast<const char*>(values), static_cast<Py_ssize_t>(count * sizeof(int64_t)));
}

PyObject* take(PyObject*, PyObject* argument) {
  const long device = PyLong_AsLong(argument);
  if (device < 0 || device >= device_count()) {
    PyErr_Format(PyExc_RuntimeError, "There is no device neuron:%ld.", device);
    return nullptr;
  }
  const auto activity = take_activity(static_cast<int>(device));
  return Py_BuildValue(
      "{s:L,s:L,s:L,s:L,s:L,s:N,s:N}", "untimed_executions", static_cast<long long>(activity.untimed_executions),
      "failed_executions", static_cast<long long>(activity.failed_executions), "bytes_to_device",
      static_cast<long long>(activity.bytes_to_device), "bytes_to_host", static_cast<long long>(activity.bytes_to_host),
      "busy_ns", static_cast<long long>(activity.busy_ns), "executions",
      as_bytes(activity.executions.data(), activity.executions.size()), "latency",
      as_bytes(activity.latency.data(), activity.latency.size()));
}

PyObject* on_first_allocation(PyObject*, PyObject* callback) {
  set_first_allocation_callback(callback);
  return none();
}

PyObject* finish(PyObject*, PyObject* argument) {
  const long device = PyLong_AsLong(argument);
  if (device < 0 || device >= device_count()) {
    PyErr_Format(PyExc_RuntimeError, "There is no device neuron:%ld.", device);
    return nullptr;
  }
  return PyLong_FromLongLong(device_finish_ns(static_cast<int>(device)));
}

}  // namespace

PyMethodDef activity_functions[] = {
    {"take_activity", take, METH_O, nullptr},
    {"device_finish_ns", finish, METH_O, nullptr},
    {"set_first_allocation_callback", on_first_allocation, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace neuron
