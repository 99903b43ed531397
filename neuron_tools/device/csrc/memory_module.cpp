// The Python face of the memory history: plain tuples, from which Python makes PyTorch's snapshot.
#include "python_functions.h"

#include "device.h"
#include "memory.h"
#include "memory_history.h"

#include <torch/csrc/profiler/combined_traceback.h>

#include <unordered_map>
#include <vector>

namespace neuron {
namespace {

// Numbers stacks as they are met; those that are equal objects once.
class StackTable {
 public:
  // -1 for none.
  Py_ssize_t number(const AskerStack& stack) {
    if (stack == nullptr) {
      return -1;
    }
    const auto found = numbers_.try_emplace(stack.get(), static_cast<Py_ssize_t>(kept_.size()));
    if (found.second) {
      kept_.push_back(stack);
    }
    return found.first->second;
  }

  // [[(name, file, line), innermost first], ...]; null with an exception set.
  PyObject* to_python() const {
    std::vector<torch::CapturedTraceback*> tracebacks;
    for (const auto& stack : kept_) {
      tracebacks.push_back(torch::getCapturedTracebackFromContext(stack));
    }
    const auto symbolized = torch::symbolize(tracebacks);
    PyObject* stacks = PyList_New(0);
    for (const auto& traceback : symbolized.tracebacks) {
      PyObject* frames = PyList_New(0);
      for (const auto index : traceback) {
        const auto& frame = symbolized.all_frames.at(index);
        append(frames, Py_BuildValue("(ssK)", frame.funcname.c_str(), frame.filename.c_str(),
                                     static_cast<unsigned long long>(frame.lineno)));
      }
      append(stacks, frames);
    }
    return stacks;
  }

  static void append(PyObject* list, PyObject* steal) {
    if (list != nullptr && steal != nullptr) {
      PyList_Append(list, steal);
    }
    Py_XDECREF(steal);
  }

 private:
  std::unordered_map<const c10::GatheredContext*, Py_ssize_t> numbers_;
  std::vector<AskerStack> kept_;
};

PyObject* set_history(PyObject*, PyObject* arguments) {
  int events = 0, live = 0, allocations = 0, frees = 0, clear = 0;
  unsigned long long most = 0;
  if (!PyArg_ParseTuple(arguments, "ppppKp", &events, &live, &allocations, &frees, &most, &clear)) {
    return nullptr;
  }
  return guarded([&] {
    set_memory_history({events != 0, live != 0, allocations != 0, frees != 0, static_cast<size_t>(most)}, clear != 0);
    return none();
  });
}

PyObject* live_to_python(StackTable& stacks) {
  PyObject* list = PyList_New(0);
  for (const auto& live : live_allocations()) {
    StackTable::append(list, Py_BuildValue("(iKLn)", live.device, static_cast<unsigned long long>(live.address),
                                           static_cast<long long>(live.bytes), stacks.number(live.stack)));
  }
  return list;
}

PyObject* events_to_python(int device, StackTable& stacks) {
  static const char* const names[] = {"allocate", "free", "out_of_memory", "snapshot"};
  PyObject* list = PyList_New(0);
  for (const auto& event : take_memory_events(device)) {
    StackTable::append(
        list, Py_BuildValue("(sKLLn)", names[static_cast<int>(event.action)],
                            static_cast<unsigned long long>(event.address), static_cast<long long>(event.bytes),
                            static_cast<long long>(event.time_us), stacks.number(event.stack)));
  }
  return list;
}

// ([(device, address, bytes, stack)], per device [(action, address, bytes, time in us, stack)], stacks)
PyObject* get_memory_record(PyObject*, PyObject*) {
  return guarded([] {
    StackTable stacks;
    PyObject* live = live_to_python(stacks);
    PyObject* events = PyList_New(0);
    for (int device = 0; device < device_count(); ++device) {
      StackTable::append(events, events_to_python(device, stacks));
    }
    PyObject* result = Py_BuildValue("(NNN)", live, events, stacks.to_python());
    if (result != nullptr && PyErr_Occurred() != nullptr) {
      Py_CLEAR(result);
    }
    return result;
  });
}

PyObject* count_allocations(PyObject*, PyObject* argument) {
  return PyBool_FromLong(exchange_counted(PyObject_IsTrue(argument) == 1));
}

PyObject* move_values(PyObject*, PyObject* argument) {
  return PyBool_FromLong(exchange_copies_move_values(PyObject_IsTrue(argument) == 1));
}

}  // namespace

PyMethodDef memory_functions[] = {
    {"set_memory_history", set_history, METH_VARARGS, nullptr},
    {"memory_record", get_memory_record, METH_NOARGS, nullptr},
    {"count_allocations", count_allocations, METH_O, nullptr},
    {"move_values", move_values, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace neuron
