#include <Python.h>

#include "waiting.h"

#include "activity.h"
#include "device.h"
#include "event_log.h"
#include "host_clock.h"
#include "memory.h"
#include "operators.h"
#include "profiler.h"
#include "spin_lock.h"
#include "timeline.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

namespace neuron {
namespace {

constexpr size_t kMostFused = 16;
constexpr int64_t kAlive = std::numeric_limits<int64_t>::max();

std::atomic<int> fusion_mode{static_cast<int>(FusionMode::kOff)};
std::atomic<uint64_t> boundaries{0};
thread_local bool launching_here = false;

// Another thread is placing operations, perhaps asking Python for a cost: it must be able to get the GIL.
void give_way() {
  if (PyGILState_Check() != 0) {
    Py_BEGIN_ALLOW_THREADS;
    std::this_thread::yield();
    Py_END_ALLOW_THREADS;
  } else {
    std::this_thread::yield();
  }
}

bool may_begin(const WaitingOperation& operation) {
  return operation.in_order && (operation.cost.flags & kCannotFuse) == 0 && !operation.needs_values;
}

bool may_follow(const WaitingOperation& first, const WaitingOperation& next) {
  return may_begin(next) && (next.cost.flags & kBeginsFusion) == 0 && next.stream == first.stream &&
      next.boundary == first.boundary && ((next.record.flags ^ first.record.flags) & kInOptimizer) == 0;
}

class Queue {
 public:
  void add(WaitingOperation operation) {
    const int64_t now = operation.record.host_end_ns;
    const auto unknown = [](const TensorPlace& place) { return place.buffer == kUnknownBuffer; };
    operation.in_order = std::none_of(operation.uses.begin(), operation.uses.end(), unknown);
    {
      std::lock_guard<SpinLock> lock(lock_);
      for (const auto& result : operation.results) {
        operation.in_order &= result.place.buffer > 0;
        made_.emplace(result.place.buffer, kAlive);
      }
      operations_.push_back(std::move(operation));
      made_count_.store(made_.size(), std::memory_order_relaxed);
    }
    run(now, false);
  }

  // Places what has its turn until a time, or all; does nothing where this thread is at it already.
  void run(int64_t time_ns, bool all) {
    if (launching_here) {
      return;
    }
    while (true) {
      size_t count = 0;
      {
        std::lock_guard<SpinLock> lock(lock_);
        if (operations_.empty()) {
          return;
        }
        if (!launching_) {
          count = next_count(time_ns, all);
          if (count == 0) {
            return;
          }
          launching_ = launching_here = true;
        } else if (!all) {
          return;
        }
      }
      if (count == 0) {
        give_way();
        continue;
      }
      const size_t placed = launch(count);
      std::lock_guard<SpinLock> lock(lock_);
      remove(placed);
      launching_ = launching_here = false;
    }
  }

  void tell_freed(int64_t buffer) {
    if (made_count_.load(std::memory_order_relaxed) == 0) {
      return;
    }
    const int64_t now = host_now_ns();
    std::lock_guard<SpinLock> lock(lock_);
    const auto found = made_.find(buffer);
    if (found != made_.end()) {
      found->second = now;
    }
  }

  void forget() {
    std::lock_guard<SpinLock> lock(lock_);
    operations_.clear();
    made_.clear();
    made_count_ = 0;
    launching_ = false;
  }

 private:
  // How many of the first operations are to run now, as one execution if that pays; 0: none yet.
  size_t next_count(int64_t time_ns, bool all) {
    const auto& first = operations_.front();
    const bool lazy = fusion_mode.load(std::memory_order_relaxed) == static_cast<int>(FusionMode::kLazy);
    start_ns_ = next_start_ns(first.device, first.stream, first.record.host_end_ns);
    if (!lazy && !all && start_ns_ > time_ns) {
      return 0;
    }
    group_.assign(1, &operations_.front());
    bool closed = true;
    if (may_begin(first)) {
      closed = false;
      while (!closed && group_.size() < operations_.size()) {
        auto& next = operations_[group_.size()];
        if (!lazy && next.record.host_end_ns > start_ns_) {
          break;
        }
        closed = group_.size() == kMostFused || !may_follow(first, next);
        if (!closed) {
          group_.push_back(&next);
        }
      }
    }
    if (lazy && !all && !closed) {
      return 0;
    }
    start_ns_ = std::max(start_ns_, group_.back()->record.host_end_ns);
    return group_.size();
  }

  // The group's operations stay where they are while others are added behind them. Returns how many were placed.
  size_t launch(size_t count) {
    FusedCost fused;
    if (count > 1) {
      fused = fused_cost_of(describe());
    }
    if (fused.count < 2 || fused.count > count) {
      place_one(*group_.front());
      return 1;
    }
    place_fused(fused.cost, fused.count);
    return fused.count;
  }

  // Under the lock: others free memory and add operations meanwhile.
  FusionRequest describe() {
    std::lock_guard<SpinLock> lock(lock_);
    FusionRequest request;
    for (const auto* operation : group_) {
      request.operations.push_back(operation);
      for (const auto& result : operation->results) {
        const auto found = made_.find(result.place.buffer);
        request.needed.push_back(
            found == made_.end() || found->second > start_ns_ || used_after(group_.size(), found->first));
      }
    }
    return request;
  }

  bool used_after(size_t count, int64_t buffer) const {
    return std::any_of(operations_.begin() + static_cast<std::ptrdiff_t>(count), operations_.end(), [&](const auto& later) {
      return std::any_of(later.uses.begin(), later.uses.end(), [&](const auto& use) { return use.buffer == buffer; });
    });
  }

  void place_one(WaitingOperation& operation) {
    bool has_room = true;
    const auto log = [&](const Interval& interval) {
      operation.record.device_start_ns = interval.start_ns;
      operation.record.device_end_ns = interval.end_ns;
      has_room = !operation.recorded || append_record(operation.record);
    };
    const auto interval = place_compute(
        operation.device, operation.stream, operation.record.host_end_ns, operation.cost.duration_ns, log);
    finish(operation, 1, operation.cost.executable, interval, has_room);
  }

  void place_fused(const Cost& cost, size_t count) {
    const auto& first = *group_.front();
    const auto& last = *group_[count - 1];
    bool has_room = true;
    const auto log = [&](const Interval& interval) {
      has_room = !last.recorded || log_fused(cost, count, interval);
    };
    const auto interval =
        place_compute(first.device, first.stream, last.record.host_end_ns, cost.duration_ns, log);
    finish(first, count, cost.executable, interval, has_room);
  }

  // The operations asked for, then the execution that they became: they stand together in the log.
  bool log_fused(const Cost& cost, size_t count, const Interval& interval) {
    bool has_room = true;
    for (size_t i = 0; i < count; ++i) {
      Record record = group_[i]->record;
      record.kind = RecordKind::kFusedOperation;
      record.device_start_ns = interval.start_ns;
      record.device_end_ns = interval.end_ns;
      has_room &= append_record(record);
    }
    Record record = group_[count - 1]->record;
    record.kind = RecordKind::kFused;
    record.executable = cost.executable;
    record.flags |= cost.flags & kRecordedFlags;
    record.device_start_ns = interval.start_ns;
    record.device_end_ns = interval.end_ns;
    record.address = static_cast<int64_t>(count);
    return append_record(record) && has_room;
  }

  void finish(
      const WaitingOperation& first, size_t count, uint32_t executable, const Interval& interval, bool has_room) {
    const int64_t latency_ns = interval.end_ns - first.record.host_start_ns;
    count_execution(first.device, executable, interval.end_ns - interval.start_ns, latency_ns);
    if (!has_room) {
      flush_event_log();
    }
    if (first.profiled) {
      show_to_profiler(first, count, interval);
    }
  }

  void show_to_profiler(const WaitingOperation& first, size_t count, const Interval& interval) {
    std::string name = first.info->name;
    for (size_t i = 1; i < count; ++i) {
      name += " + " + group_[i]->info->name;
    }
    add_profile_span({std::move(name), false, first.device, first.stream, interval.start_ns, interval.end_ns});
  }

  void remove(size_t count) {
    operations_.erase(operations_.begin(), operations_.begin() + static_cast<std::ptrdiff_t>(std::min(count, operations_.size())));
    if (operations_.empty()) {
      made_.clear();
      made_count_ = 0;
    }
  }

  SpinLock lock_;
  std::deque<WaitingOperation> operations_;
  std::unordered_map<int64_t, int64_t> made_;  // buffer that a waiting operation made -> when it was freed
  std::atomic<size_t> made_count_{0};
  std::vector<WaitingOperation*> group_;  // the first operations, while they are being placed
  int64_t start_ns_ = 0;  // when the operations that are being placed could start at the earliest
  bool launching_ = false;
};

// Never destroyed: operators may run after static destructors.
Queue& queue(int device) {
  static auto* queues = new std::array<Queue, kMaxDevices>;
  return (*queues)[device];
}

TensorPlace place_of(const at::Tensor& tensor) {
  TensorPlace place;
  if (tensor.device().type() == kNeuron) {
    const Buffer* buffer = tensor.has_storage() ? buffer_of(tensor.storage().unsafeGetStorageImpl()) : nullptr;
    place.buffer = buffer == nullptr ? kUnknownBuffer : buffer->ordinal;
    place.offset = tensor.storage_offset();
  }
  return place;
}

template <class Take>
void each_tensor(const Stack& stack, int count, Take take) {
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    const c10::IValue& value = stack[i];
    if (value.isTensor()) {
      take(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        take(tensor);
      }
    } else if (value.isOptionalTensorList()) {
      for (const auto& tensor : value.toOptionalTensorVector()) {
        take(tensor.value_or(at::Tensor()));
      }
    }
  }
}

}  // namespace

void set_fusion_mode(FusionMode mode) {
  fusion_mode = static_cast<int>(mode);
}

bool operations_may_wait() {
  return fusion_mode.load(std::memory_order_relaxed) != static_cast<int>(FusionMode::kOff) &&
      !at::globalContext().deterministicAlgorithms();
}

void collect_places(const Stack& stack, int count, std::vector<TensorPlace>* places) {
  each_tensor(stack, count, [places](const at::Tensor& tensor) {
    if (tensor.defined()) {
      places->push_back(place_of(tensor));
    }
  });
}

void collect_results(const Stack& stack, int count, std::vector<TensorResult>* results) {
  each_tensor(stack, count, [results](const at::Tensor& tensor) {
    if (tensor.defined()) {
      results->push_back({place_of(tensor), tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec()});
    }
  });
}

void add_waiting(WaitingOperation operation) {
  operation.boundary = boundaries.load(std::memory_order_relaxed);
  queue(operation.device).add(std::move(operation));
}

void run_waiting(int device) {
  queue(device).run(0, true);
}

void run_all_waiting() {
  for (int device = 0; device < device_count(); ++device) {
    run_waiting(device);
  }
}

void mark_boundary() {
  boundaries.fetch_add(1, std::memory_order_relaxed);
}

void tell_freed(int64_t buffer) {
  if (fusion_mode.load(std::memory_order_relaxed) == static_cast<int>(FusionMode::kOff)) {
    return;
  }
  for (int device = 0; device < device_count(); ++device) {
    queue(device).tell_freed(buffer);
  }
}

void forget_waiting() {
  for (int device = 0; device < device_count(); ++device) {
    queue(device).forget();
  }
}

}  // namespace neuron
