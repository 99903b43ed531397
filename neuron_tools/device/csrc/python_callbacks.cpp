#include <Python.h>

#include "python_callbacks.h"

#include "host_clock.h"
#include "look_up.h"
#include "operators.h"
#include "recorder.h"
#include "signature.h"
#include "waiting.h"

#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace neuron {
namespace {

PyObject* signature_callback = nullptr;
PyObject* stack_callback = nullptr;
PyObject* name_callback = nullptr;
PyObject* fusion_callback = nullptr;
PyObject* first_allocation_callback = nullptr;
std::atomic<bool> first_allocation_told{true};
bool warned = false;

std::mutex cost_mutex;
std::unordered_map<uint64_t, Cost> costs;
std::unordered_set<uint64_t> costs_in_work;  // guarded by the GIL
std::atomic<uint64_t> cost_generation{1};
std::unordered_map<uint64_t, FusedCost> fused_costs;
constexpr size_t kMostFusedCosts = 65536;

struct CachedCost {
  uint64_t hash = 0;
  uint64_t generation = 0;
  Cost cost;
};
constexpr size_t kCachedCosts = 512;
thread_local std::array<CachedCost, kCachedCosts> recent_costs;

// The GIL, a clean Python error state, the dispatcher and autograd as outside any kernel and any user mode, and
// no recording of what the callback itself does.
class CallbackScope {
 public:
  CallbackScope()
      : top_level_(c10::default_included_set, c10::default_excluded_set),
        outer_autograd_(c10::AutogradState::get_tls_state()),
        gil_(PyGILState_Ensure()),
        outer_suppress_(exchange_suppressed(true)) {
    const bool grad = true, inference = false, forward_grad = true, multithreading = true;
    c10::AutogradState::set_tls_state(c10::AutogradState(grad, inference, forward_grad, multithreading));
    PyErr_Fetch(&type_, &value_, &trace_);
    hide_thread(true);
  }
  ~CallbackScope() {
    hide_thread(false);
    c10::AutogradState::set_tls_state(outer_autograd_);
    PyErr_Restore(type_, value_, trace_);
    exchange_suppressed(outer_suppress_);
    PyGILState_Release(gil_);
  }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

 private:
  HostClockPause not_the_users_time_;
  at::DisableRecordFunctionGuard no_rows_of_operators_;
  c10::impl::ForceDispatchKeyGuard top_level_;
  c10::AutogradState outer_autograd_;
  PyGILState_STATE gil_;
  bool outer_suppress_;
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* trace_ = nullptr;
};

// A failing callback must not fail the user's program: the first failure is told, the rest are counted as 0.
// Ctrl-C that arrived in a callback is the program's: it is raised again as soon as the program runs on.
void warn_once(const char* what) {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    PyErr_Clear();
    PyErr_SetInterrupt();
    return;
  }
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  if (!warned) {
    warned = true;
    PyErr_WarnFormat(
        PyExc_RuntimeWarning, 1, "neuron-tools could not %s (%S: %S); such operations take no device time here.", what,
        type == nullptr ? Py_None : type, value == nullptr ? Py_None : value);
    PyErr_Clear();
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
}

Cost ask_python(const OperatorInfo& info, const Stack& stack) {
  Cost cost;
  PyObject* arguments = signature_arguments(info, stack);
  PyObject* result = nullptr;
  if (arguments != nullptr && signature_callback != nullptr) {
    result = PyObject_CallFunction(signature_callback, "sN", info.name.c_str(), arguments);
  }
  unsigned int executable = 0, flags = 0;
  long long duration_ns = 0;
  if (result != nullptr && PyArg_ParseTuple(result, "ILI", &executable, &duration_ns, &flags)) {
    cost = {executable, flags, duration_ns};
  } else if (PyErr_Occurred() != nullptr) {
    warn_once(("time " + info.name).c_str());
  }
  Py_XDECREF(result);
  return cost;
}

// Another thread is asking Python for this very signature: its answer is awaited, with the GIL given away.
void await_cost(uint64_t hash) {
  while (costs_in_work.count(hash) != 0) {
    Py_BEGIN_ALLOW_THREADS;
    std::this_thread::yield();
    Py_END_ALLOW_THREADS;
  }
}

Cost find_or_ask(uint64_t hash, const OperatorInfo& info, const Stack& stack) {
  Cost cost;
  if (look_up(cost_mutex, costs, hash, &cost)) {
    return cost;
  }
  const CallbackScope scope;
  await_cost(hash);
  if (look_up(cost_mutex, costs, hash, &cost)) {
    return cost;
  }
  costs_in_work.insert(hash);
  cost = ask_python(info, stack);
  {
    std::lock_guard<std::mutex> lock(cost_mutex);
    costs.emplace(hash, cost);
  }
  costs_in_work.erase(hash);
  return cost;
}

// Buffers in order of first appearance: the same operations over other memory are the same program.
class BufferNumbers {
 public:
  int64_t number(int64_t buffer) {
    if (buffer < 0) {
      return -1;
    }
    const auto found = std::find(seen_.begin(), seen_.end(), buffer);
    if (found == seen_.end()) {
      seen_.push_back(buffer);
      return static_cast<int64_t>(seen_.size()) - 1;
    }
    return found - seen_.begin();
  }

 private:
  std::vector<int64_t> seen_;
};

uint64_t hash_of(const FusionRequest& request) {
  uint64_t hash = 0;
  const auto mix = [&hash](int64_t word) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  };
  BufferNumbers buffers;
  for (const auto* operation : request.operations) {
    mix(operation->cost.executable);
    for (const auto& use : operation->uses) {
      mix(buffers.number(use.buffer));
      mix(use.offset);
    }
    for (const auto& result : operation->results) {
      mix(buffers.number(result.place.buffer));
      mix(result.place.offset);
      mix(static_cast<int64_t>(result.dtype));
      for (const auto& extents : {result.sizes, result.strides}) {
        std::for_each(extents.begin(), extents.end(), mix);
      }
    }
  }
  std::for_each(request.needed.begin(), request.needed.end(), mix);
  return hash;
}

void append_new(PyObject* list, PyObject* item) {
  if (list != nullptr && item != nullptr) {
    PyList_Append(list, item);
  }
  Py_XDECREF(item);
}

PyObject* list_of(const std::vector<int64_t>& values) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(values.size()));
  for (size_t i = 0; list != nullptr && i < values.size(); ++i) {
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
  }
  return list;
}

// [(executable, [(buffer, offset)...], [(buffer, offset, dtype, sizes, strides, needed)...])...]
PyObject* python_operations(const FusionRequest& request) {
  BufferNumbers buffers;
  auto needed = request.needed.begin();
  PyObject* operations = PyList_New(0);
  for (const auto* operation : request.operations) {
    PyObject* uses = PyList_New(0);
    for (const auto& use : operation->uses) {
      append_new(uses, Py_BuildValue("(LL)", static_cast<long long>(buffers.number(use.buffer)), static_cast<long long>(use.offset)));
    }
    PyObject* results = PyList_New(0);
    for (const auto& result : operation->results) {
      append_new(
          results, Py_BuildValue(
                       "(LLsNNO)", static_cast<long long>(buffers.number(result.place.buffer)),
                       static_cast<long long>(result.place.offset),
                       dtype_name(result.dtype), list_of(result.sizes), list_of(result.strides),
                       *needed++ ? Py_True : Py_False));
    }
    append_new(operations, Py_BuildValue("(INN)", operation->cost.executable, uses, results));
  }
  return operations;
}

FusedCost ask_python_fused(const FusionRequest& request) {
  FusedCost fused;
  PyObject* operations = python_operations(request);
  PyObject* result = nullptr;
  if (operations != nullptr && fusion_callback != nullptr) {
    result = PyObject_CallFunction(fusion_callback, "O", operations);
  }
  Py_XDECREF(operations);
  unsigned int executable = 0, flags = 0, count = 0;
  long long duration_ns = 0;
  if (result != nullptr && PyArg_ParseTuple(result, "ILII", &executable, &duration_ns, &flags, &count)) {
    fused = {{executable, flags, duration_ns}, count};
  } else if (PyErr_Occurred() != nullptr) {
    warn_once("fuse operations");
  }
  Py_XDECREF(result);
  return fused;
}

void replace_callback(PyObject*& slot, PyObject* callback) {
  PyObject* old = slot;
  slot = callback == Py_None ? nullptr : callback;
  Py_XINCREF(slot);
  Py_XDECREF(old);
}

void tell_first_allocation() {
  const CallbackScope scope;
  if (first_allocation_callback == nullptr) {
    return;
  }
  PyObject* result = PyObject_CallNoArgs(first_allocation_callback);
  if (result == nullptr) {
    PyErr_WriteUnraisable(first_allocation_callback);
  }
  Py_XDECREF(result);
}

}  // namespace

void hide_thread(bool hide) {
  PyThreadState* thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030B0000
  hide ? PyThreadState_EnterTracing(thread) : PyThreadState_LeaveTracing(thread);
#else
  thread->tracing += hide ? 1 : -1;
  thread->cframe->use_tracing =
      thread->tracing == 0 && (thread->c_tracefunc != nullptr || thread->c_profilefunc != nullptr);
#endif
}

void set_first_allocation_callback(PyObject* callback) {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { first_allocation_told = false; });
  (void)registered;
  replace_callback(first_allocation_callback, callback);
  first_allocation_told = first_allocation_callback == nullptr;
}

void tell_allocation() {
  if (!first_allocation_told.load(std::memory_order_relaxed) && !first_allocation_told.exchange(true)) {
    tell_first_allocation();
  }
}

void set_callbacks(PyObject* on_signature, PyObject* on_stack, PyObject* on_name, PyObject* on_fusion) {
  replace_callback(signature_callback, on_signature);
  replace_callback(stack_callback, on_stack);
  replace_callback(name_callback, on_name);
  replace_callback(fusion_callback, on_fusion);
  warned = false;
  std::lock_guard<std::mutex> lock(cost_mutex);
  costs.clear();
  fused_costs.clear();
  ++cost_generation;
}

Cost cost_of(uint64_t hash, const OperatorInfo& info, const Stack& stack) {
  auto& recent = recent_costs[hash % kCachedCosts];
  const uint64_t generation = cost_generation.load(std::memory_order_relaxed);
  if (recent.hash != hash || recent.generation != generation) {
    recent = {hash, generation, find_or_ask(hash, info, stack)};
  }
  return recent.cost;
}

FusedCost fused_cost_of(const FusionRequest& request) {
  const uint64_t hash = hash_of(request);
  FusedCost fused;
  if (look_up(cost_mutex, fused_costs, hash, &fused)) {
    return fused;
  }
  {
    const CallbackScope scope;
    fused = ask_python_fused(request);
  }
  std::lock_guard<std::mutex> lock(cost_mutex);
  if (fused_costs.size() >= kMostFusedCosts) {
    fused_costs.clear();
  }
  fused_costs.emplace(hash, fused);
  return fused;
}

void tell_stack(uint32_t id, PyObject* frames) {
  const CallbackScope scope;
  if (stack_callback == nullptr) {
    Py_DECREF(frames);
    return;
  }
  PyObject* result = PyObject_CallFunction(stack_callback, "IN", id, frames);
  if (result == nullptr) {
    warn_once("keep a source stack");
  }
  Py_XDECREF(result);
}

void tell_name(uint32_t id, const std::string& text) {
  const CallbackScope scope;
  if (name_callback == nullptr) {
    return;
  }
  PyObject* result = PyObject_CallFunction(name_callback, "Is", id, text.c_str());
  if (result == nullptr) {
    warn_once("keep a name");
  }
  Py_XDECREF(result);
}

}  // namespace neuron
