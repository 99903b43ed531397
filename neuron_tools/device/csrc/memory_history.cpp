#include "memory_history.h"

#include "device.h"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include <array>
#include <atomic>
#include <deque>

namespace neuron {
namespace {

struct History {
  std::mutex mutex;
  std::deque<MemoryEvent> events;
};

// Never destroyed: tensors may be freed after static destructors ran.
History& history(int device) {
  static auto* histories = new std::array<History, kMaxDevices>;
  return (*histories)[device];
}

std::atomic<bool> remembering{false};
std::mutex options_mutex;
MemoryHistoryOptions current_options;

MemoryHistoryOptions options_now() {
  std::lock_guard<std::mutex> lock(options_mutex);
  return current_options;
}

AskerStack gather_stack() {
  return torch::CapturedTraceback::gather(/*python=*/true, /*script=*/true, /*cpp=*/false);
}

void remember(int device, const MemoryHistoryOptions& options, MemoryAction action, uint64_t address, int64_t bytes,
              AskerStack stack) {
  std::vector<MemoryEvent> forgotten;  // their stacks are given up without the lock
  auto& kept = history(device);
  std::lock_guard<std::mutex> lock(kept.mutex);
  while (kept.events.size() >= options.most_events && !kept.events.empty()) {
    forgotten.push_back(std::move(kept.events.front()));
    kept.events.pop_front();
  }
  if (options.most_events > 0) {
    kept.events.push_back({action, address, bytes, c10::getTime() / 1000, std::move(stack)});
  }
}

void clear_events() {
  for (int device = 0; device < kMaxDevices; ++device) {
    std::deque<MemoryEvent> forgotten;
    std::lock_guard<std::mutex> lock(history(device).mutex);
    forgotten.swap(history(device).events);
  }
}

}  // namespace

void set_memory_history(const MemoryHistoryOptions& options, bool clear) {
  {
    std::lock_guard<std::mutex> lock(options_mutex);
    current_options = options;
  }
  remembering = options.events || options.live_stacks;
  if (clear || !remembering) {
    clear_events();
  }
}

AskerStack remember_allocation(int device, uint64_t address, int64_t bytes) {
  if (!remembering.load(std::memory_order_relaxed)) {
    return nullptr;
  }
  const auto options = options_now();
  AskerStack stack = options.live_stacks || options.event_stacks ? gather_stack() : nullptr;
  if (options.events) {
    remember(device, options, MemoryAction::kAllocate, address, bytes, options.event_stacks ? stack : nullptr);
  }
  return stack;
}

void remember_free(int device, uint64_t address, int64_t bytes) {
  if (!remembering.load(std::memory_order_relaxed)) {
    return;
  }
  const auto options = options_now();
  if (options.events) {
    remember(device, options, MemoryAction::kFree, address, bytes, options.free_stacks ? gather_stack() : nullptr);
  }
}

void remember_out_of_memory(int device, int64_t free_bytes, int64_t asked_bytes) {
  if (!remembering.load(std::memory_order_relaxed)) {
    return;
  }
  const auto options = options_now();
  if (options.events) {
    remember(device, options, MemoryAction::kOutOfMemory, static_cast<uint64_t>(free_bytes), asked_bytes,
             options.event_stacks ? gather_stack() : nullptr);
  }
}

std::vector<MemoryEvent> take_memory_events(int device) {
  if (remembering.load(std::memory_order_relaxed) && options_now().events) {
    remember(device, options_now(), MemoryAction::kSnapshot, 0, 0, nullptr);
  }
  auto& kept = history(device);
  std::lock_guard<std::mutex> lock(kept.mutex);
  return {kept.events.begin(), kept.events.end()};
}

}  // namespace neuron
