// Device memory: host memory with an owner, statistics and a limit per NeuronCore.
//
// The bytes of a device storage live in a CPU StorageImpl that every CPU view of the storage shares, so
// that CPU kernels see the true aliasing and nothing is copied.
#pragma once

#include "memory_history.h"
#include "operator_types.h"

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace neuron {

// Where an allocation came from, for "who holds the memory".
struct AllocationSite {
  const OperatorInfo* operation = nullptr;  // lives as long as the process
  uint32_t stack = 0;
  uint32_t module = 0;
};

// One live device allocation; the context of the storage's DataPtr.
struct Buffer {
  c10::Storage host;
  int device = 0;
  int64_t bytes = 0;
  int64_t ordinal = 0;  // stands for the address: the same in every run of the same program
  AllocationSite site;
  AskerStack stack;  // taken where a memory history is kept
  bool counted = true;
  std::atomic<bool> is_blank{false};  // nothing made its values: it stands for a result that was left out
  Buffer* previous = nullptr;
  Buffer* next = nullptr;
};

// Of all allocations, or of those of one size: PyTorch tells small ones (up to 1 MiB) from large ones.
struct MemoryStatistics {
  int64_t allocated_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t total_allocated_bytes = 0;
  int64_t total_freed_bytes = 0;
  int64_t live_allocations = 0;
  int64_t peak_allocations = 0;
  int64_t allocation_count = 0;
  int64_t free_count = 0;
  int64_t out_of_memory_count = 0;
};

// Bytes that one site holds.
struct MemoryHolder {
  AllocationSite site;
  int64_t bytes = 0;
  int64_t allocations = 0;
};

c10::Allocator* device_allocator();

// Wraps host memory as device memory, without a copy. Throws c10::OutOfMemoryError over the limit.
c10::DataPtr device_pointer(c10::Storage host, int device);
c10::Storage allocate_host_storage(size_t bytes);

// What the calling thread allocates from now on takes memory of no NeuronCore: whole values of tensors that
// lie in parts on several. Returns what held before.
bool exchange_counted(bool counted);

// Whether copies between host and device that the calling thread makes move values. Where they do not, memory and time
// are those of parts of a tensor whose whole values are elsewhere.
bool copies_move_values();
bool exchange_copies_move_values(bool move);

// Says of a storage that nothing made its values, or that something did.
void mark_blank(const c10::Storage& storage, bool is_blank);

// The buffer behind a storage, or null where the storage was made from a foreign pointer.
Buffer* buffer_of(const c10::StorageImpl* storage);

enum class MemoryPool { kAll, kSmall, kLarge };
constexpr int kMemoryPools = 3;
MemoryStatistics memory_statistics(int device, MemoryPool pool = MemoryPool::kAll);
void reset_peak_statistics(int device);
void reset_accumulated_statistics(int device);
std::vector<MemoryHolder> memory_holders(int device);

// 0 means no limit.
void set_memory_limit(int64_t bytes);
int64_t memory_limit();

// The table of the largest holders, as text with one line each.
std::string describe_holders(int device, size_t most);

// Every live buffer, oldest first: how a recording learns what was there before it began.
struct LiveAllocation {
  int device;
  int64_t bytes;
  int64_t ordinal;
  const OperatorInfo* operation;  // null where it was allocated directly
  uint64_t address;
  AskerStack stack;
};
std::vector<LiveAllocation> live_allocations();

}  // namespace neuron
