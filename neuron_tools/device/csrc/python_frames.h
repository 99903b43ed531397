// Walks the calling thread's Python frames, innermost first.
#pragma once

#include <Python.h>
#include <frameobject.h>

// CPython 3.11 lets the frames be read in place: without the GIL, which operators run without, and without
// making a frame object for each. Only the thread itself changes its frames, and it is here.
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define NEURON_READS_FRAMES_IN_PLACE 1
#define Py_BUILD_CORE 1
extern "C" {
#include <internal/pycore_frame.h>
}
#undef Py_BUILD_CORE
#else
#define NEURON_READS_FRAMES_IN_PLACE 0
#endif

namespace neuron {

#if NEURON_READS_FRAMES_IN_PLACE

// `visit(code, instruction offset in bytes)` gives false to stop. The code objects are borrowed.
template <class Visit>
void walk_python_frames(PyThreadState* thread, Visit visit) {
  for (_PyInterpreterFrame* frame = thread->cframe->current_frame; frame != nullptr; frame = frame->previous) {
    if (_PyFrame_IsIncomplete(frame)) {
      continue;
    }
    const int offset = _PyInterpreterFrame_LASTI(frame) * static_cast<int>(sizeof(_Py_CODEUNIT));
    if (!visit(frame->f_code, offset)) {
      return;
    }
  }
}

#else

inline int instruction_offset(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti * 2;
#endif
}

template <class Visit>
void walk_python_frames(PyThreadState* thread, Visit visit) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyFrameObject* frame = PyThreadState_GetFrame(thread);
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const bool go_on = visit(code, instruction_offset(frame));
    Py_DECREF(code);
    PyFrameObject* outer = go_on ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = outer;
  }
  PyGILState_Release(gil);
}

#endif

}  // namespace neuron
