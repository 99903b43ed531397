// Walks a thread's Python frames, innermost first.
#pragma once

#include <Python.h>
#include <frameobject.h>

#include <c10/util/SmallVector.h>

#include <cstdint>

// CPython 3.11 lets the frames be read in place: by the thread itself without the GIL, which operators run without,
// and of any thread with it. No frame object is made: there, that may collect garbage, whose finalizers give the GIL
// away and let the thread leave the very frame that is being read.
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

struct RawFrame {
  PyCodeObject* code;  // a borrowed reference, held by the frame
  int offset;          // of the instruction, in bytes
};
using RawStack = c10::SmallVector<RawFrame, 64>;

// The code objects stay alive without references while the frames are suspended: below this call where the thread is
// the calling one, else as long as the GIL is kept.
inline RawStack walk_frames(PyThreadState* thread, size_t most) {
  RawStack stack;
  walk_python_frames(thread, [&stack, most](PyCodeObject* code, int offset) {
    stack.push_back({code, offset});
    return stack.size() < most;
  });
  return stack;
}

inline uint64_t mix_hash(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 32;
}

inline uint64_t hash_of(const RawStack& stack) {
  uint64_t hash = stack.size();
  for (const auto& frame : stack) {
    hash = mix_hash(hash, reinterpret_cast<uint64_t>(frame.code));
    hash = mix_hash(hash, static_cast<uint64_t>(frame.offset));
  }
  return hash;
}

// A hash is of addresses: the code objects must live as long as it is remembered. Needs the GIL.
inline void keep_code(const RawStack& stack) {
  for (const auto& frame : stack) {
    Py_INCREF(reinterpret_cast<PyObject*>(frame.code));
  }
}

}  // namespace neuron
