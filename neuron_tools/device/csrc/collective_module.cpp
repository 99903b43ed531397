// Collectives of several processes, for Python: who meets whom, and when, is decided there.
#include "python_functions.h"

#include "recorder.h"
#include "timeline.h"
#include "waiting.h"

#include <memory>

namespace neuron {
namespace {

constexpr char kCapsule[] = "neuron.collective";

void delete_issue(PyObject* capsule) {
  delete static_cast<CollectiveIssue*>(PyCapsule_GetPointer(capsule, kCapsule));
}

PyObject* issue(PyObject*, PyObject* arguments) {
  int device = 0, has_user_frames = 0;
  if (!PyArg_ParseTuple(arguments, "ip", &device, &has_user_frames)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    check_device(device);
    if (!timing_is_on()) {
      return none();
    }
    auto made = std::make_unique<CollectiveIssue>(issue_collective(device, has_user_frames != 0));
    const auto ready_ns = static_cast<long long>(made->ready_ns);
    PyObject* capsule = PyCapsule_New(made.get(), kCapsule, delete_issue);
    if (capsule == nullptr) {
      return nullptr;
    }
    made.release();
    return Py_BuildValue("(NL)", capsule, ready_ns);
  });
}

PyObject* record(PyObject*, PyObject* arguments) {
  PyObject* capsule = nullptr;
  unsigned int signature = 0;
  const char* title = nullptr;
  long long sequence = 0, bytes = 0, ready_ns = 0, start_ns = 0, end_ns = 0;
  if (!PyArg_ParseTuple(
          arguments, "OIsLLLLL", &capsule, &signature, &title, &sequence, &bytes, &ready_ns, &start_ns, &end_ns)) {
    return nullptr;
  }
  const auto* issued = static_cast<CollectiveIssue*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (issued == nullptr) {
    return nullptr;
  }
  return guarded([&] {
    Record done = issued->record;
    done.executable = signature;
    done.sequence = sequence;
    done.bytes = bytes;
    done.address = ready_ns;
    done.device_start_ns = start_ns;
    done.device_end_ns = end_ns;
    record_collective(*issued, done, title);
    return none();
  });
}

// A function of a device and a time.
template <void (*function)(int device, int64_t time_ns)>
PyObject* call_at(PyObject*, PyObject* arguments) {
  int device = 0;
  long long time_ns = 0;
  if (!PyArg_ParseTuple(arguments, "iL", &device, &time_ns)) {
    return nullptr;
  }
  return guarded([&] {
    check_device(device);
    run_waiting(device);
    function(device, time_ns);
    return none();
  });
}

void hold(int device, int64_t time_ns) {
  hold_stream_until(device, current_stream(device), time_ns);
}

void wait(int device, int64_t time_ns) {
  record_synchronize(device, current_stream(device), time_ns);
}

}  // namespace

PyMethodDef collective_functions[] = {
    {"issue_collective", issue, METH_VARARGS, nullptr},
    {"record_collective", record, METH_VARARGS, nullptr},
    {"hold_stream", call_at<hold>, METH_VARARGS, nullptr},
    {"wait_host", call_at<wait>, METH_VARARGS, nullptr},
    {"set_event_time", call_with_number<exchange_event_time>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace neuron
