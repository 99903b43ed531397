// Python's functions for virtual time and recording; documented in `neuron_tools.device.native`.
#include "python_functions.h"

#include "event_log.h"
#include "host_clock.h"
#include "names.h"
#include "python_callbacks.h"
#include "python_stack.h"
#include "recorder.h"
#include "timeline.h"
#include "waiting.h"

#include <string>

namespace neuron {
namespace {

// Joining the flushing thread and writing the rest must not hold other Python threads up.
template <class Body>
PyObject* without_gil(Body body) {
  return guarded([&body] {
    PyThreadState* state = PyEval_SaveThread();
    try {
      body();
    } catch (...) {
      PyEval_RestoreThread(state);
      throw;
    }
    PyEval_RestoreThread(state);
    return none();
  });
}

void check_no_session() {
  TORCH_CHECK(!session_is_on(), "A recording is under way in this process; stop it first.");
}

PyObject* begin_recording(PyObject*, PyObject* arguments) {
  const char* path = nullptr;
  PyObject *on_signature = nullptr, *on_stack = nullptr, *on_name = nullptr, *on_fusion = Py_None;
  if (!PyArg_ParseTuple(arguments, "sOOO|O", &path, &on_signature, &on_stack, &on_name, &on_fusion)) {
    return nullptr;
  }
  return guarded([&] {
    check_no_session();
    set_callbacks(on_signature, on_stack, on_name, on_fusion);
    start_recording(path);
    return none();
  });
}

PyObject* begin_timing(PyObject*, PyObject* arguments) {
  PyObject *on_signature = nullptr, *on_fusion = Py_None;
  if (!PyArg_ParseTuple(arguments, "O|O", &on_signature, &on_fusion)) {
    return nullptr;
  }
  return guarded([&] {
    check_no_session();
    set_callbacks(on_signature, Py_None, Py_None, on_fusion);
    start_timing();
    return none();
  });
}

PyObject* end_recording(PyObject*, PyObject*) {
  PyObject* result = without_gil([] { stop_recording(); });
  set_callbacks(Py_None, Py_None, Py_None, Py_None);
  return result;
}

PyObject* drop_recording(PyObject*, PyObject*) {
  PyObject* result = without_gil([] { abandon_recording(); });
  set_callbacks(Py_None, Py_None, Py_None, Py_None);
  return result;
}

void set_fusion(long long mode) {
  run_all_waiting();
  set_fusion_mode(static_cast<FusionMode>(mode));
}

PyObject* settle(PyObject*, PyObject*) {
  return without_gil([] { run_all_waiting(); });
}

PyObject* flush(PyObject*, PyObject*) {
  return without_gil([] { flush_event_log(); });
}

PyObject* get_recording_error(PyObject*, PyObject*) {
  const std::string error = event_log_error();
  return error.empty() ? none() : PyUnicode_FromString(error.c_str());
}

PyObject* set_clock(PyObject*, PyObject* arguments) {
  int fixed = 0;
  long long fixed_ns = 0;
  if (!PyArg_ParseTuple(arguments, "pL", &fixed, &fixed_ns)) {
    return nullptr;
  }
  set_clock_mode(fixed != 0 ? ClockMode::kFixed : ClockMode::kMeasured, fixed_ns);
  return none();
}

PyObject* set_copies(PyObject*, PyObject* arguments) {
  double bytes_per_second = 0;
  long long latency_ns = 0;
  if (!PyArg_ParseTuple(arguments, "dL", &bytes_per_second, &latency_ns)) {
    return nullptr;
  }
  set_copy_model(bytes_per_second, latency_ns);
  return none();
}

PyObject* name_module(PyObject*, PyObject* arguments) {
  unsigned int module = 0;
  const char* text = nullptr;
  if (!PyArg_ParseTuple(arguments, "Is", &module, &text)) {
    return nullptr;
  }
  describe_module(module, text);
  return none();
}

PyObject* set_optimizer(PyObject*, PyObject* argument) {
  return PyBool_FromLong(exchange_in_optimizer(PyObject_IsTrue(argument) == 1));
}

PyObject* suppress(PyObject*, PyObject* argument) {
  return PyBool_FromLong(exchange_suppressed(PyObject_IsTrue(argument) == 1));
}

PyObject* hide_this_thread(PyObject*, PyObject*) {
  hide_thread(true);
  Py_RETURN_NONE;
}

PyObject* intern(PyObject*, PyObject* argument) {
  const char* text = PyUnicode_AsUTF8(argument);
  return text == nullptr ? nullptr : PyLong_FromUnsignedLong(intern_name(text));
}

PyObject* add_range(PyObject*, PyObject* arguments) {
  unsigned int name = 0;
  long long start_ns = 0, end_ns = 0;
  int kind = 0;
  if (!PyArg_ParseTuple(arguments, "ILLi", &name, &start_ns, &end_ns, &kind)) {
    return nullptr;
  }
  record_range(name, start_ns, end_ns, static_cast<RecordKind>(kind));
  return none();
}

PyObject* run_graph(PyObject*, PyObject* arguments) {
  unsigned int executable = 0, name = 0;
  long long duration_ns = 0;
  if (!PyArg_ParseTuple(arguments, "ILI", &executable, &duration_ns, &name)) {
    return nullptr;
  }
  record_graph(executable, duration_ns, name);
  return none();
}

PyObject* set_internal(PyObject*, PyObject* arguments) {
  const char *own, *framework;
  if (!PyArg_ParseTuple(arguments, "ss", &own, &framework)) {
    return nullptr;
  }
  set_internal_folders(own, framework);
  return none();
}

}  // namespace

PyMethodDef recorder_functions[] = {
    {"start_recording", begin_recording, METH_VARARGS, nullptr},
    {"start_timing", begin_timing, METH_VARARGS, nullptr},
    {"stop_recording", end_recording, METH_NOARGS, nullptr},
    {"abandon_recording", drop_recording, METH_NOARGS, nullptr},
    {"flush", flush, METH_NOARGS, nullptr},
    {"set_fusion", call_with_number<set_fusion>, METH_O, nullptr},
    {"settle", settle, METH_NOARGS, nullptr},
    {"mark_boundary", call<mark_boundary>, METH_NOARGS, nullptr},
    {"recording_error", get_recording_error, METH_NOARGS, nullptr},
    {"record_count", call<record_count>, METH_NOARGS, nullptr},
    {"timing_is_on", call<timing_is_on>, METH_NOARGS, nullptr},
    {"recording_is_on", call<recording_is_on>, METH_NOARGS, nullptr},
    {"set_clock", set_clock, METH_VARARGS, nullptr},
    {"host_now_ns", call<host_now_ns>, METH_NOARGS, nullptr},
    {"pause_clock", call<pause_host_clock>, METH_NOARGS, nullptr},
    {"resume_clock", call<resume_host_clock>, METH_NOARGS, nullptr},
    {"set_launch_overhead_ns", call_with_number<set_launch_overhead_ns>, METH_O, nullptr},
    {"set_copy_model", set_copies, METH_VARARGS, nullptr},
    {"set_module", call_with_number<exchange_module>, METH_O, nullptr},
    {"name_module", name_module, METH_VARARGS, nullptr},
    {"set_optimizer", set_optimizer, METH_O, nullptr},
    {"suppress", suppress, METH_O, nullptr},
    {"hide_thread", hide_this_thread, METH_NOARGS, nullptr},
    {"intern_name", intern, METH_O, nullptr},
    {"record_range", add_range, METH_VARARGS, nullptr},
    {"run_graph", run_graph, METH_VARARGS, nullptr},
    {"set_internal_folders", set_internal, METH_VARARGS, nullptr},
    {"capture_stack", call<capture_stack>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace neuron
