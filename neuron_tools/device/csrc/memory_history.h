// What happened to device memory and who asked, with Python stacks: the source of PyTorch's memory snapshots.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace neuron {

using AskerStack = std::shared_ptr<c10::GatheredContext>;  // null where no stack was taken

enum class MemoryAction : uint8_t { kAllocate, kFree, kOutOfMemory, kSnapshot };

struct MemoryEvent {
  MemoryAction action;
  uint64_t address;  // for kOutOfMemory: bytes that are still free
  int64_t bytes;
  int64_t time_us;  // since 1970
  AskerStack stack;
};

struct MemoryHistoryOptions {
  bool events = false;        // keep allocations and frees, the newest `most_events` of each device
  bool live_stacks = false;   // keep the stack of what is still allocated
  bool event_stacks = false;  // and in the events of allocations
  bool free_stacks = false;   // and in those of frees
  size_t most_events = SIZE_MAX;
};

void set_memory_history(const MemoryHistoryOptions& options, bool clear);

// The stack to keep with a buffer that is being allocated; also remembers the event.
AskerStack remember_allocation(int device, uint64_t address, int64_t bytes);
void remember_free(int device, uint64_t address, int64_t bytes);
void remember_out_of_memory(int device, int64_t free_bytes, int64_t asked_bytes);

// Remembers that a snapshot was taken; the events of a device, oldest first.
std::vector<MemoryEvent> take_memory_events(int device);

}  // namespace neuron
