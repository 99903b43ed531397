#include "python_functions.h"

#include "host_sampler.h"

#include "host_clock.h"
#include "python_callbacks.h"
#include "python_frames.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace neuron {
namespace {

constexpr int64_t kFreeWithin = 100'000;  // taking a lock that nobody has is quicker than this
constexpr double kWorkForCost = 100;      // each look is paid for by so many times its cost of the program's work
constexpr double kLeastShare = 0.1;       // of the time in which a program is taken to work: it may wait, and is looked at
constexpr int64_t kLongestInterval = 1'000'000'000;
constexpr size_t kMostFrames = 160;

int64_t read_clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Processor time of the calling thread: what a loaded machine keeps it waiting for is no cost.
int64_t thread_time_ns() {
  return read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

// The part of the time since it was last asked in which the process had a processor: little on a loaded machine, where
// looks at an even pace would cost much of it.
class WorkingShare {
 public:
  double since_last() {
    const int64_t work_ns = read_clock_ns(CLOCK_PROCESS_CPUTIME_ID), now_ns = read_clock_ns(CLOCK_MONOTONIC);
    const double worked = static_cast<double>(work_ns - work_ns_) / static_cast<double>(std::max<int64_t>(now_ns - now_ns_, 1));
    work_ns_ = work_ns;
    now_ns_ = now_ns;
    return std::clamp(worked, kLeastShare, 1.0);
  }

 private:
  int64_t work_ns_ = read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  int64_t now_ns_ = read_clock_ns(CLOCK_MONOTONIC);
};

enum class Kind : uint8_t { kThread, kCollection };

// As neuron_tools.records.host_samples has it.
struct Record {
  Kind kind;
  uint8_t blocked;
  uint8_t main;
  uint8_t padding;
  uint32_t tick;
  uint32_t thread;
  uint32_t stack;
  int64_t start_ns, end_ns;
  int64_t wall_start_ns, wall_end_ns;
};
static_assert(sizeof(Record) == 48);

// What frames are called in the file of stacks; each is asked for once. Guarded by the GIL.
class FrameTexts {
 public:
  explicit FrameTexts(PyObject* describe) : describe_(describe) {
    Py_INCREF(describe);
  }

  // One line of the file; empty where Python cannot say. Calls Python, which may let other threads run.
  std::string line_of(uint32_t number, const RawStack& stack) {
    std::string frames;
    for (const RawFrame& frame : stack) {
      frames.append(frames.empty() ? "" : ",").append(text_of(frame, false));
    }
    const std::string& innermost = text_of(stack.front(), true);
    const bool is_known = !innermost.empty() && frames.back() != ',';
    return is_known ? "{\"id\":" + std::to_string(number) + ",\"frames\":[" + frames + "]," + innermost + "}\n" : "";
  }

  void drop_callback() {
    Py_CLEAR(describe_);
  }

 private:
  using Place = std::tuple<PyCodeObject*, int, bool>;

  const std::string& text_of(const RawFrame& frame, bool innermost) {
    const Place place{frame.code, frame.offset, innermost};
    const auto known = texts_.find(place);
    return known != texts_.end() ? known->second : texts_.emplace(place, described(frame, innermost)).first->second;
  }

  std::string described(const RawFrame& frame, bool innermost) const {
    const Span span = innermost ? span_of(frame) : Span{PyCode_Addr2Line(frame.code, frame.offset)};
    PyObject* text = nullptr;
    if (describe_ != nullptr) {
      text = PyObject_CallFunction(describe_, "Oi(iiii)O", frame.code, frame.offset, span.line, span.end_line, span.column,
                                   span.end_column, innermost ? Py_True : Py_False);
    }
    const char* bytes = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
    std::string found = bytes == nullptr ? "" : bytes;
    Py_XDECREF(text);
    PyErr_Clear();
    return found;
  }

  // Of what a frame evaluates; 0 and below where Python does not say.
  struct Span {
    int line = 0, end_line = 0, column = 0, end_column = 0;
  };

  static Span span_of(const RawFrame& frame) {
    Span span;
#if PY_VERSION_HEX >= 0x030B0000
    PyCode_Addr2Location(frame.code, frame.offset, &span.line, &span.column, &span.end_line, &span.end_column);
#endif
    return span;
  }

  PyObject* describe_;
  std::map<Place, std::string> texts_;  // stays where it is while others are added
};

// The numbers of stacks and threads. Guarded by the GIL.
class SampleNumbers {
 public:
  SampleNumbers(PyObject* describe, int file, unsigned long main_thread)
      : texts_(describe), file_(file), main_thread_(main_thread) {}

  uint32_t stack(const RawStack& stack) {
    const auto [place, is_new] = stacks_.try_emplace(hash_of(stack), static_cast<uint32_t>(stacks_.size() + 1));
    if (is_new) {
      keep_code(stack);
      undefined_.push_back({place->second, stack});
    }
    return place->second;
  }

  bool is_main(unsigned long thread) const {
    return thread == main_thread_;
  }

  uint32_t thread(unsigned long thread) {
    return is_main(thread) ? 0 : threads_.try_emplace(thread, static_cast<uint32_t>(threads_.size() + 1)).first->second;
  }

  // Writes what the new stacks are. Calls Python, which may let other threads run.
  void define_new() {
    std::string lines;
    while (!undefined_.empty()) {
      const auto [number, stack] = std::move(undefined_.back());
      undefined_.pop_back();
      lines += texts_.line_of(number, stack);
    }
    if (!lines.empty()) {
      const ssize_t written = ::write(file_, lines.data(), lines.size());
      (void)written;  // a full disk loses stacks and no more
    }
  }

  void drop_callback() {
    texts_.drop_callback();
  }

 private:
  struct Undefined {
    uint32_t number;
    RawStack stack;
  };

  FrameTexts texts_;
  const int file_;
  const unsigned long main_thread_;
  std::unordered_map<uint64_t, uint32_t> stacks_;
  std::unordered_map<unsigned long, uint32_t> threads_;
  std::vector<Undefined> undefined_;
};

class HostSampler {
 public:
  explicit HostSampler(const Sampling& sampling)
      : numbers_(sampling.describe, sampling.stacks_file, sampling.main_thread),
        file_(sampling.file),
        interval_ns_(sampling.interval_ns),
        always_(sampling.always),
        last_host_ns_(host_now_ns()),
        last_wall_ns_(wall_now_ns()) {}

  void start() {
    sigset_t kept, before;
    sigfillset(&kept);  // signals are for the program's threads, but for the faults of this one
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      sigdelset(&kept, fault);
    }
    pthread_sigmask(SIG_SETMASK, &kept, &before);
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
    numbers_.drop_callback();
  }

  void record(const Collection& collection) {
    RawStack stack = walk_frames(PyThreadState_Get(), kMostFrames + static_cast<size_t>(collection.frames));
    stack.erase(stack.begin(), stack.begin() + std::min<size_t>(stack.size(), collection.frames));
    if (stack.empty()) {
      return;
    }
    Record record = new_record(Kind::kCollection, PyThread_get_thread_ident(), stack);
    record.start_ns = collection.start_ns;
    record.end_ns = collection.end_ns;
    record.wall_start_ns = collection.wall_start_ns;
    record.wall_end_ns = collection.wall_end_ns;
    numbers_.define_new();
    write({record});
  }

 private:
  void run() {
    const PyGILState_STATE state = PyGILState_Ensure();
    own_ = PyThreadState_Get();
    hide_thread(true);
    PyEval_SaveThread();
    look_repeatedly();
    PyEval_RestoreThread(own_);
    hide_thread(false);
    PyGILState_Release(state);
  }

  void look_repeatedly() {
    int64_t cost_ns = 0;
    WorkingShare working;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
      const double paid_ns = static_cast<double>(cost_ns) * kWorkForCost / working.since_last();
      const int64_t pause_ns = std::clamp(static_cast<int64_t>(paid_ns), interval_ns_, kLongestInterval);
      wake_.wait_for(lock, std::chrono::nanoseconds(pause_ns), [this] { return stopping_; });
      if (stopping_ || (!always_ && !host_clock_runs())) {
        continue;
      }
      lock.unlock();
      cost_ns = look();
      lock.lock();
    }
  }

  // Returns what it cost.
  int64_t look() {
    const int64_t asked_ns = wall_now_ns();
    PyEval_RestoreThread(own_);
    const int64_t host_ns = pause_host_clock();
    const int64_t wall_ns = wall_now_ns();
    const int64_t begun_ns = thread_time_ns();
    const auto records = records_until(host_ns, wall_ns, wall_ns - asked_ns < kFreeWithin);
    numbers_.define_new();
    resume_host_clock();
    PyEval_SaveThread();
    write(records);
    return thread_time_ns() - begun_ns;
  }

  // Nothing in here lets another thread run. Where nobody had the GIL, all threads wait.
  std::vector<Record> records_until(int64_t host_ns, int64_t wall_ns, bool was_free) {
    std::vector<Record> records;
    ++tick_;
    PyThreadState* thread = PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own_));
    for (; thread != nullptr; thread = PyThreadState_Next(thread)) {
      const RawStack stack = thread == own_ ? RawStack() : walk_frames(thread, kMostFrames);
      if (!stack.empty()) {
        records.push_back(new_record(Kind::kThread, thread->thread_id, stack));
        records.back().blocked = was_free;
        records.back().start_ns = last_host_ns_;
        records.back().end_ns = host_ns;
        records.back().wall_start_ns = last_wall_ns_;
        records.back().wall_end_ns = wall_ns;
      }
    }
    last_host_ns_ = host_ns;
    last_wall_ns_ = wall_ns;
    return records;
  }

  Record new_record(Kind kind, unsigned long thread, const RawStack& stack) {
    Record record{};
    record.kind = kind;
    record.main = numbers_.is_main(thread);
    record.tick = tick_;
    record.thread = numbers_.thread(thread);
    record.stack = numbers_.stack(stack);
    return record;
  }

  // A full disk loses samples and no more.
  void write(const std::vector<Record>& records) const {
    const ssize_t written = ::write(file_, records.data(), records.size() * sizeof(Record));
    (void)written;
  }

  SampleNumbers numbers_;
  const int file_;
  const int64_t interval_ns_;
  const bool always_;
  int64_t last_host_ns_;
  int64_t last_wall_ns_;
  uint32_t tick_ = 0;
  PyThreadState* own_ = nullptr;
  std::thread thread_;
  std::mutex mutex_;  // never held while waiting for the GIL
  std::condition_variable wake_;
  bool stopping_ = false;
};

std::atomic<HostSampler*> sampler{nullptr};

}  // namespace

void start_sampling(const Sampling& sampling) {
  // A child's copy has no thread and perhaps a locked mutex: it is left alone.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { sampler = nullptr; });
  (void)registered;
  stop_sampling();
  auto* made = new HostSampler(sampling);
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

void record_collection(const Collection& collection) {
  if (HostSampler* running = sampler; running != nullptr) {
    running->record(collection);
  }
}

namespace {

PyObject* begin_sampling(PyObject*, PyObject* arguments) {
  Sampling sampling{};
  long long interval_ns = 0;
  int always = 0;
  if (!PyArg_ParseTuple(arguments, "OiikLp", &sampling.describe, &sampling.file, &sampling.stacks_file, &sampling.main_thread, &interval_ns,
                        &always)) {
    return nullptr;
  }
  sampling.interval_ns = interval_ns;
  sampling.always = always != 0;
  return guarded([&] {
    start_sampling(sampling);
    return none();
  });
}

PyObject* add_collection(PyObject*, PyObject* arguments) {
  long long start_ns = 0, wall_start_ns = 0, end_ns = 0, wall_end_ns = 0;
  int frames = 0;
  if (!PyArg_ParseTuple(arguments, "LLLLi", &start_ns, &wall_start_ns, &end_ns, &wall_end_ns, &frames)) {
    return nullptr;
  }
  return guarded([&] {
    record_collection({start_ns, wall_start_ns, end_ns, wall_end_ns, frames});
    return none();
  });
}

}  // namespace

PyMethodDef sampler_functions[] = {
    {"start_sampling", begin_sampling, METH_VARARGS, nullptr},
    {"stop_sampling", call<stop_sampling>, METH_NOARGS, nullptr},
    {"record_collection", add_collection, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace neuron
