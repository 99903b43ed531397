#include <Python.h>
#include <frameobject.h>

#include "python_stack.h"

#include "python_callbacks.h"

#include <c10/util/SmallVector.h>

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace neuron {
namespace {

constexpr size_t kMostFrames = 32;
constexpr size_t kDeepest = 512;

struct RawFrame {
  PyCodeObject* code;  // a borrowed reference, held by the frame
  int offset;          // of the instruction, in bytes
};
using RawStack = c10::SmallVector<RawFrame, 64>;

// All of these are guarded by the GIL.
std::unordered_map<uint64_t, uint32_t> stack_by_raw_hash;
std::unordered_map<uint64_t, uint32_t> stack_by_user_hash;
std::vector<std::string> internal_folders;
uint32_t last_stack = 0;

std::mutex place_mutex;
std::vector<std::string> places{""};

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 32;
}

int instruction_offset(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti * 2;
#endif
}

const char* function_name(PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyUnicode_AsUTF8(code->co_qualname);
#else
  return PyUnicode_AsUTF8(code->co_name);
#endif
}

// The frames' owners are suspended below this call, so the code objects stay alive without references.
RawStack walk_frames() {
  RawStack stack;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr && stack.size() < kDeepest) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    stack.push_back({code, instruction_offset(frame)});
    Py_DECREF(code);
    PyFrameObject* outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  return stack;
}

uint64_t hash_of(const RawStack& stack) {
  uint64_t hash = stack.size();
  for (const auto& frame : stack) {
    hash = mix(hash, reinterpret_cast<uint64_t>(frame.code));
    hash = mix(hash, static_cast<uint64_t>(frame.offset));
  }
  return hash;
}

bool is_internal(const char* file) {
  if (file == nullptr || std::strncmp(file, "<frozen", 7) == 0) {
    return true;
  }
  for (const auto& folder : internal_folders) {
    if (std::strncmp(file, folder.c_str(), folder.size()) == 0) {
      return true;
    }
  }
  return false;
}

struct SourceFrame {
  const char* file;
  int line;
  const char* function;
};

SourceFrame source_of(const RawFrame& frame) {
  const char* file = PyUnicode_AsUTF8(frame.code->co_filename);
  const char* function = function_name(frame.code);
  if (file == nullptr || function == nullptr) {
    PyErr_Clear();
  }
  return {file == nullptr ? "?" : file, PyCode_Addr2Line(frame.code, frame.offset), function == nullptr ? "?" : function};
}

std::vector<SourceFrame> user_frames(const RawStack& stack) {
  std::vector<SourceFrame> frames;
  for (const auto& raw : stack) {
    const auto frame = source_of(raw);
    if (!is_internal(frame.file)) {
      frames.push_back(frame);
    }
    if (frames.size() == kMostFrames) {
      break;
    }
  }
  if (frames.empty()) {
    frames.push_back(source_of(stack.front()));
  }
  return frames;
}

uint64_t hash_of(const std::vector<SourceFrame>& frames) {
  uint64_t hash = frames.size();
  for (const auto& frame : frames) {
    hash = mix(hash, std::hash<std::string>()(frame.file));
    hash = mix(hash, static_cast<uint64_t>(frame.line));
    hash = mix(hash, std::hash<std::string>()(frame.function));
  }
  return hash;
}

PyObject* as_tuple(const std::vector<SourceFrame>& frames) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(frames.size()));
  for (size_t i = 0; i < frames.size(); ++i) {
    PyObject* entry = Py_BuildValue("(sis)", frames[i].file, frames[i].line, frames[i].function);
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), entry);
  }
  return tuple;
}

void keep_place(const SourceFrame& innermost) {
  std::lock_guard<std::mutex> lock(place_mutex);
  places.push_back(std::string(innermost.file) + ":" + std::to_string(innermost.line));
}

uint32_t number_new_stack(const RawStack& stack) {
  const auto frames = user_frames(stack);
  auto& id = stack_by_user_hash[hash_of(frames)];
  if (id == 0) {
    id = ++last_stack;
    keep_place(frames.front());
    tell_stack(id, as_tuple(frames));
  }
  return id;
}

uint32_t number_stack(const RawStack& stack) {
  const uint64_t hash = hash_of(stack);
  const auto found = stack_by_raw_hash.find(hash);
  if (found != stack_by_raw_hash.end()) {
    return found->second;
  }
  // The hash is of addresses: the code objects must live as long as it is remembered.
  for (const auto& frame : stack) {
    Py_INCREF(reinterpret_cast<PyObject*>(frame.code));
  }
  const uint32_t id = number_new_stack(stack);
  stack_by_raw_hash.emplace(hash, id);
  return id;
}

}  // namespace

uint32_t capture_stack() {
  // A thread that never ran Python has no frames; asking would make it a Python thread.
  if (PyGILState_GetThisThreadState() == nullptr) {
    return 0;
  }
  const PyGILState_STATE gil = PyGILState_Ensure();
  const RawStack stack = walk_frames();
  const uint32_t id = stack.empty() ? 0 : number_stack(stack);
  PyGILState_Release(gil);
  return id;
}

void add_internal_folder(const std::string& folder) {
  internal_folders.push_back(folder);
}

void reset_stacks() {
  stack_by_raw_hash.clear();
  stack_by_user_hash.clear();
  last_stack = 0;
  std::lock_guard<std::mutex> lock(place_mutex);
  places.assign(1, "");
}

std::string stack_place(uint32_t stack) {
  std::lock_guard<std::mutex> lock(place_mutex);
  return stack < places.size() ? places[stack] : "";
}

}  // namespace neuron
