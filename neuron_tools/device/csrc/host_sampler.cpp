#include "python_functions.h"

#include "host_sampler.h"

#include "host_clock.h"
#include "python_callbacks.h"

#include <dlfcn.h>
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

constexpr auto kPatience = std::chrono::milliseconds(1);  // for the main thread's answer
constexpr int64_t kLargestCostInverse = 100;              // of the time, for asking
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

  // In the main thread, with the GIL.
  // What a signal's handler raised meanwhile is the program's: -1 lets it be raised there.
  int answer() {
    queued_ = false;
    return ask(true) ? 0 : -1;
  }

 private:
  void run() {
    int64_t cost_ns = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
      const int64_t pause_ns = std::clamp(cost_ns * kLargestCostInverse, interval_ns_, kLongestInterval);
      wake_.wait_for(lock, std::chrono::nanoseconds(pause_ns), [this] { return stopping_; });
      if (stopping_ || (!always_ && !host_clock_runs())) {
        continue;
      }
      wanted_ = true;
      lock.unlock();
      request();
      lock.lock();
      if (!wake_.wait_for(lock, kPatience, [this] { return stopping_ || !wanted_; }) && !stopping_) {
        lock.unlock();
        const PyGILState_STATE state = PyGILState_Ensure();
        if (!ask(false)) {
          PyErr_Clear();
        }
        PyGILState_Release(state);
        lock.lock();
      }
      cost_ns = (3 * cost_ns + last_cost_ns_.load()) / 4;
    }
  }

  void request();

  // With the GIL; whoever comes first. False where Python raised something.
  bool ask(bool answered) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!wanted_ || stopping_ || asking_) {
        return true;
      }
      wanted_ = false;
      asking_ = true;
    }
    const int64_t host_ns = pause_host_clock();
    const int64_t wall_ns = wall_now_ns();
    const int64_t begun_ns = thread_time_ns();
    hide_thread(true);
    PyObject* result =
        PyObject_CallFunction(callback_, "LLO", static_cast<long long>(host_ns), static_cast<long long>(wall_ns),
                              answered ? Py_True : Py_False);
    Py_XDECREF(result);
    hide_thread(false);
    last_cost_ns_ = thread_time_ns() - begun_ns;
    resume_host_clock();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      asking_ = false;
    }
    wake_.notify_all();
    return result != nullptr;
  }

  PyObject* callback_;
  const int64_t interval_ns_;
  const bool always_;
  std::thread thread_;
  std::mutex mutex_;  // taken after the GIL, never kept while waiting for it
  std::condition_variable wake_;
  std::atomic<bool> queued_{false};
  std::atomic<int64_t> last_cost_ns_{0};
  bool stopping_ = false;
  bool wanted_ = false;
  bool asking_ = false;
};

std::atomic<HostSampler*> sampler{nullptr};

int answer_pending(void*) {
  if (HostSampler* running = sampler.load()) {
    return running->answer();
  }
  return 0;
}

// Before 3.12 a pending call that another thread queues is not looked at until the main thread stops for another
// reason, such as giving the GIL away: a signal is such a reason,
// even one that turns out to be none.
void interrupt_main_thread() {
#if PY_VERSION_HEX < 0x030C0000
  using SignalReceived = void (*)(PyInterpreterState*);
  static const auto received = reinterpret_cast<SignalReceived>(dlsym(RTLD_DEFAULT, "_PyEval_SignalReceived"));
  if (received != nullptr) {
    received(PyInterpreterState_Main());
  }
#endif
}

void HostSampler::request() {
  if (!queued_.exchange(true) && Py_AddPendingCall(answer_pending, nullptr) != 0) {
    queued_ = false;  // the queue is full
  }
  interrupt_main_thread();
}

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
  // Not deleted: a pending call may still be inside it in another thread's stack. There is one for a session.
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
