#include <Python.h>

#include "python_callbacks.h"

#include "host_clock.h"
#include "operators.h"
#include "recorder.h"
#include "signature.h"

#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

namespace neuron {
namespace {

PyObject* signature_callback = nullptr;
PyObject* stack_callback = nullptr;
PyObject* name_callback = nullptr;
PyObject* first_allocation_callback = nullptr;
std::atomic<bool> first_allocation_told{true};
bool warned = false;

std::mutex cost_mutex;
std::unordered_map<uint64_t, Cost> costs;
std::unordered_set<uint64_t> costs_in_work;  // guarded by the GIL
std::atomic<uint64_t> cost_generation{1};

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
  }
  ~CallbackScope() {
    c10::AutogradState::set_tls_state(outer_autograd_);
    PyErr_Restore(type_, value_, trace_);
    exchange_suppressed(outer_suppress_);
    PyGILState_Release(gil_);
  }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

 private:
  HostClockPause not_the_users_time_;
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

bool find_cost(uint64_t hash, Cost* cost) {
  std::lock_guard<std::mutex> lock(cost_mutex);
  const auto found = costs.find(hash);
  if (found == costs.end()) {
    return false;
  }
  *cost = found->second;
  return true;
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
  if (find_cost(hash, &cost)) {
    return cost;
  }
  const CallbackScope scope;
  await_cost(hash);
  if (find_cost(hash, &cost)) {
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

void set_callbacks(PyObject* on_signature, PyObject* on_stack, PyObject* on_name) {
  replace_callback(signature_callback, on_signature);
  replace_callback(stack_callback, on_stack);
  replace_callback(name_callback, on_name);
  warned = false;
  std::lock_guard<std::mutex> lock(cost_mutex);
  costs.clear();
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
