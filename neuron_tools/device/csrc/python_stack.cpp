#include "python_frames.h"

#include "python_stack.h"

#include "look_up.h"
#include "python_callbacks.h"

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace neuron {
namespace {

// Trainers and graph compilers stand dozens of frames above the line that a user wrote.
constexpr size_t kMostFrames = 128;
constexpr size_t kDeepest = 512;

std::mutex stack_mutex;  // never held while Python is called
std::unordered_map<uint64_t, uint32_t> stack_by_raw_hash;
std::atomic<uint64_t> stack_numbering{1};  // counts the resets

// These are guarded by the GIL.
std::unordered_map<uint64_t, uint32_t> stack_by_user_hash;
std::string own_folder, framework_folder;
uint32_t last_stack = 0;

// The stacks that this thread met last, so that most captures take no lock.
struct RecentStack {
  uint64_t hash = 0;
  uint64_t numbering = 0;
  uint32_t id = 0;
};
constexpr size_t kRecentStacks = 256;
thread_local std::array<RecentStack, kRecentStacks> recent_stacks;

std::mutex place_mutex;
std::vector<std::string> places{""};

const char* function_name(PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyUnicode_AsUTF8(code->co_qualname);
#else
  return PyUnicode_AsUTF8(code->co_name);
#endif
}

bool is_below(const std::string& folder, const char* file) {
  return std::strncmp(file, folder.c_str(), folder.size()) == 0;
}

// Ours and Python's: never shown.
bool is_hidden(const char* file) {
  return std::strncmp(file, "<frozen", 7) == 0 || is_below(own_folder, file);
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

// The user's frames; where there are none, the framework's innermost one stands for them.
std::vector<SourceFrame> shown_frames(const RawStack& stack) {
  std::vector<SourceFrame> frames, of_framework;
  for (const auto& raw : stack) {
    const auto frame = source_of(raw);
    if (is_hidden(frame.file)) {
      continue;
    }
    auto& found = is_below(framework_folder, frame.file) ? of_framework : frames;
    found.push_back(frame);
    if (frames.size() == kMostFrames) {
      break;
    }
  }
  if (frames.empty() && !of_framework.empty()) {
    frames.push_back(of_framework.front());
  }
  return frames;
}

uint64_t hash_of(const std::vector<SourceFrame>& frames) {
  uint64_t hash = frames.size();
  for (const auto& frame : frames) {
    hash = mix_hash(hash, std::hash<std::string>()(frame.file));
    hash = mix_hash(hash, static_cast<uint64_t>(frame.line));
    hash = mix_hash(hash, std::hash<std::string>()(frame.function));
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
  const auto frames = shown_frames(stack);
  if (frames.empty()) {
    return 0;
  }
  auto& id = stack_by_user_hash[hash_of(frames)];
  if (id == 0) {
    id = ++last_stack;
    keep_place(frames.front());
    tell_stack(id, as_tuple(frames));
  }
  return id;
}

uint32_t number_stack(uint64_t hash, const RawStack& stack) {
  uint32_t id = 0;
  if (look_up(stack_mutex, stack_by_raw_hash, hash, &id)) {
    return id;
  }
  const PyGILState_STATE gil = PyGILState_Ensure();
  keep_code(stack);
  id = number_new_stack(stack);
  PyGILState_Release(gil);
  std::lock_guard<std::mutex> lock(stack_mutex);
  stack_by_raw_hash.emplace(hash, id);
  return id;
}

}  // namespace

uint32_t capture_stack() {
  // A thread that never ran Python has no frames; asking would make it a Python thread.
  PyThreadState* thread = PyGILState_GetThisThreadState();
  if (thread == nullptr) {
    return 0;
  }
  const RawStack stack = walk_frames(thread, kDeepest);
  if (stack.empty()) {
    return 0;
  }
  const uint64_t hash = hash_of(stack);
  const uint64_t current = stack_numbering.load(std::memory_order_relaxed);
  auto& recent = recent_stacks[hash % kRecentStacks];
  if (recent.hash != hash || recent.numbering != current) {
    recent = {hash, current, number_stack(hash, stack)};
  }
  return recent.id;
}

void set_internal_folders(const std::string& own, const std::string& framework) {
  own_folder = own;
  framework_folder = framework;
}

void reset_stacks() {
  stack_by_user_hash.clear();
  last_stack = 0;
  {
    std::lock_guard<std::mutex> lock(stack_mutex);
    stack_by_raw_hash.clear();
    ++stack_numbering;
  }
  std::lock_guard<std::mutex> lock(place_mutex);
  places.assign(1, "");
}

std::string stack_place(uint32_t stack) {
  std::lock_guard<std::mutex> lock(place_mutex);
  return stack < places.size() ? places[stack] : "";
}

}  // namespace neuron
