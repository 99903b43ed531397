#include "python_functions.h"

#include "host_sampler.h"

#include "host_clock.h"
#include "python_callbacks.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace neuron {
namespace {

constexpr int64_t kFreeWithin = 100'000;            // taking a lock that nobody has is quicker than this
constexpr int64_t kPauseForCost = 50;                     // each look is paid for by a pause so many times as long
constexpr int64_t kLongestInterval = 1'000'000'000;

// Processor time of the calling thread: what a loaded machine keeps it waiting for is no cost.
int64_t thread_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

class HostSampler {
 public:
  HostSampler(PyObject* callback, int64_t interval_ns, bool always)
      : callback_(callback), interval_ns_(interval_ns), always_(always) {
    Py_INCREF(callback);
  }

  void start() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's threads
    thread_ = std::thread(&HostSampler::run, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // Without the GIL: the thread may be waiting for it.
  void join() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  void drop_callback() {
    Py_CLEAR(callback_);
  }

 private:
  void run() {
    int64_t cost_ns = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
      const int64_t pause_ns = std::clamp(cost_ns * kPauseForCost, interval_ns_, kLongestInterval);
      wake_.wait_for(lock, std::chrono::nanoseconds(pause_ns), [this] { return stopping_; });
      if (stopping_ || (!always_ && !host_clock_runs())) {
        continue;
      }
      lock.unlock();
      cost_ns = ask();
      lock.lock();
    }
  }

  // Returns what the answer cost.
  int64_t ask() {
    const int64_t asked_ns = wall_now_ns();
    const PyGILState_STATE state = PyGILState_Ensure();
    const int64_t host_ns = pause_host_clock();
    const int64_t wall_ns = wall_now_ns();
    const int64_t begun_ns = thread_time_ns();
    PyObject* was_free = wall_ns - asked_ns < kFreeWithin ? Py_True : Py_False;
    hide_thread(true);
    PyObject* result = PyObject_CallFunction(callback_, "LLO", static_cast<long long>(host_ns),
                                             static_cast<long long>(wall_ns), was_free);
    if (result == nullptr) {
      PyErr_Clear();
    }
    Py_XDECREF(result);
    hide_thread(false);
    const int64_t cost_ns = thread_time_ns() - begun_ns;
    resume_host_clock();
    PyGILState_Release(state);
    return cost_ns;
  }

  PyObject* callback_;
  const int64_t interval_ns_;
  const bool always_;
  std::thread thread_;
  std::mutex mutex_;  // never held while waiting for the GIL
  std::condition_variable wake_;
  bool stopping_ = false;
};

std::atomic<HostSampler*> sampler{nullptr};

}  // namespace

void start_sampling(PyObject* callback, int64_t interval_ns, bool always) {
  // A child's copy has no thread and perhaps a locked mutex: it is left alone.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { sampler = nullptr; });
  (void)registered;
  stop_sampling();
  auto* made = new HostSampler(callback, interval_ns, always);
  sampler = made;
  made->start();
}

void stop_sampling() {
  HostSampler* stopped = sampler.exchange(nullptr);
  if (stopped == nullptr) {
    return;
  }
  PyThreadState* state = PyEval_SaveThread();
  stopped->join();
  PyEval_RestoreThread(state);
  stopped->drop_callback();
  delete stopped;
}

namespace {

PyObject* begin_sampling(PyObject*, PyObject* arguments) {
  PyObject* callback = nullptr;
  long long interval_ns = 0;
  int always = 0;
  if (!PyArg_ParseTuple(arguments, "OLp", &callback, &interval_ns, &always)) {
    return nullptr;
  }
  return guarded([&] {
    start_sampling(callback, interval_ns, always != 0);
    return none();
  });
}

PyObject* end_sampling(PyObject*, PyObject*) {
  return guarded([] {
    stop_sampling();
    return none();
  });
}

}  // namespace

PyMethodDef sampler_functions[] = {
    {"start_sampling", begin_sampling, METH_VARARGS, nullptr},
    {"stop_sampling", end_sampling, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace neuron
