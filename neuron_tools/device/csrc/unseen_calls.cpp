// Callables without a frame and without a row in torch.profiler, sys.setprofile and sys.settrace: hooks into the user's
// program, which those watch as it would run without us.
#include "python_functions.h"

#include "python_callbacks.h"

#include <structmember.h>

#include <array>
#include <cstddef>

namespace neuron {
namespace {

// Calls `function`; unseen itself, or seen between `before(first argument)` and `after(first argument, answer of before)`.
struct Call {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* before;  // null: nothing
  PyObject* after;
  PyObject* attributes;
  bool seen;
};

Call* call_of(PyObject* object) {
  return reinterpret_cast<Call*>(object);
}

PyObject* run_unseen(PyObject* function, PyObject* const* arguments, size_t count, PyObject* keywords) {
  hide_thread(true);
  PyObject* result = PyObject_Vectorcall(function, arguments, count, keywords);
  hide_thread(false);
  return result;
}

// Whether `after` went well; an exception of the function itself stays the one that is raised.
bool run_after(PyObject* after, PyObject* first, PyObject* state) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* const arguments[] = {first, state};
  PyObject* result = run_unseen(after, arguments, 2, nullptr);
  Py_XDECREF(result);
  if (type != nullptr) {
    PyErr_Restore(type, value, trace);
  }
  return result != nullptr;
}

PyObject* run_around(const Call& call, PyObject* const* arguments, size_t flagged_count, PyObject* keywords) {
  if (PyVectorcall_NARGS(flagged_count) == 0) {
    return PyObject_Vectorcall(call.function, arguments, flagged_count, keywords);
  }
  PyObject* first = arguments[0];
  PyObject* state = none();
  if (call.before != nullptr) {
    Py_SETREF(state, run_unseen(call.before, &first, 1, nullptr));
    if (state == nullptr) {
      return nullptr;
    }
  }
  PyObject* result = PyObject_Vectorcall(call.function, arguments, flagged_count, keywords);
  if (call.after != nullptr && !run_after(call.after, first, state)) {
    Py_CLEAR(result);
  }
  Py_DECREF(state);
  return result;
}

// The hooks may be taken out while one of them runs: it is kept till then.
PyObject* run(PyObject* self, PyObject* const* arguments, size_t flagged_count, PyObject* keywords) {
  Py_INCREF(self);
  const Call& call = *call_of(self);
  PyObject* result = call.seen ? run_around(call, arguments, flagged_count, keywords)
                               : run_unseen(call.function, arguments, flagged_count, keywords);
  Py_DECREF(self);
  return result;
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, object);
}

std::array<PyObject**, 4> parts_of(PyObject* self) {
  Call& call = *call_of(self);
  return {&call.function, &call.before, &call.after, &call.attributes};
}

int visit_parts(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (PyObject** part : parts_of(self)) {
    Py_VISIT(*part);
  }
  return 0;
}

int clear_parts(PyObject* self) {
  for (PyObject** part : parts_of(self)) {
    Py_CLEAR(*part);
  }
  return 0;
}

void free_call(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear_parts(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Call, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Call, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

template <class Function>
void* slot(Function function) {
  return reinterpret_cast<void*>(function);
}

PyTypeObject* call_type() {
  static PyType_Slot slots[] = {
      {Py_tp_call, slot(PyVectorcall_Call)}, {Py_tp_descr_get, slot(bind)},   {Py_tp_traverse, slot(visit_parts)},
      {Py_tp_clear, slot(clear_parts)},      {Py_tp_dealloc, slot(free_call)}, {Py_tp_members, members},
      {Py_tp_getset, attributes},            {0, nullptr},
  };
  static PyType_Spec specification = {
      "_neuron_device.Call", sizeof(Call), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
          Py_TPFLAGS_DISALLOW_INSTANTIATION,
      slots};
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&specification));
  return type;
}

PyObject* kept(PyObject* part) {
  if (part == nullptr || part == Py_None) {
    return nullptr;
  }
  Py_INCREF(part);
  return part;
}

PyObject* make_call(PyObject* function, PyObject* before, PyObject* after, bool seen) {
  PyTypeObject* type = call_type();
  if (type == nullptr) {
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (self != nullptr) {
    Call& call = *call_of(self);
    call.vectorcall = run;
    call.function = kept(function);
    call.before = kept(before);
    call.after = kept(after);
    call.seen = seen;
  }
  return self;
}

PyObject* make_unseen(PyObject*, PyObject* function) {
  if (PyCallable_Check(function) == 0) {
    PyErr_SetString(PyExc_TypeError, "unseen() takes a callable.");
    return nullptr;
  }
  return make_call(function, nullptr, nullptr, false);
}

PyObject* make_around(PyObject*, PyObject* arguments) {
  PyObject *function = nullptr, *before = nullptr, *after = nullptr;
  if (!PyArg_ParseTuple(arguments, "OOO", &function, &before, &after)) {
    return nullptr;
  }
  if (PyCallable_Check(function) == 0) {
    PyErr_SetString(PyExc_TypeError, "around() takes a callable first.");
    return nullptr;
  }
  return make_call(function, before, after, true);
}

}  // namespace

PyMethodDef unseen_functions[] = {
    {"unseen", make_unseen, METH_O, nullptr},
    {"around", make_around, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace neuron
