// The Python face of the simulated driver's counters, and of the operators that ran.
#include "python_functions.h"

#include "activity.h"
#include "memory.h"
#include "operator_log.h"
#include "python_callbacks.h"
#include "timeline.h"

namespace neuron {
namespace {

PyObject* as_bytes(const int64_t* values, size_t count) {
  return PyBytes_FromStringAndSize(
      reinterpret_cast<const char*>(values), static_cast<Py_ssize_t>(count * sizeof(int64_t)));
}

PyObject* activity_of(int device) {
  const auto activity = take_activity(device);
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

PyObject* operators_that_ran(PyObject*, PyObject*) {
  return guarded([] {
    const auto names = logged_operators();
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(names.size()));
    for (size_t i = 0; list != nullptr && i < names.size(); ++i) {
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), PyUnicode_FromString(names[i].c_str()));
    }
    return list;
  });
}

}  // namespace

PyMethodDef activity_functions[] = {
    {"take_activity", call_on_device<activity_of>, METH_O, nullptr},
    {"device_finish_ns", call_on_device<device_finish_ns>, METH_O, nullptr},
    {"set_first_allocation_callback", on_first_allocation, METH_O, nullptr},
    {"clear_operator_log", call<clear_operator_log>, METH_NOARGS, nullptr},
    {"logged_operators", operators_that_ran, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace neuron
