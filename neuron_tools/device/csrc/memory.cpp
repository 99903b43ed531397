#include "memory.h"

#include "device.h"
#include "names.h"
#include "python_callbacks.h"
#include "recorder.h"
#include "skipped_values.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace neuron {
namespace {

constexpr int64_t kSmallBytes = 1 << 20;  // PyTorch's kSmallSize

thread_local bool allocations_count = true;
thread_local bool values_move = true;

struct Ledger {
  std::mutex mutex;
  std::array<MemoryStatistics, kMemoryPools> statistics;  // by MemoryPool
  Buffer* newest = nullptr;
};

// Never destroyed: tensors may be freed after static destructors ran.
Ledger& ledger(int device) {
  static auto* ledgers = new std::array<Ledger, kMaxDevices>;
  return (*ledgers)[device];
}

MemoryStatistics& all_of(Ledger& book) {
  return book.statistics[static_cast<int>(MemoryPool::kAll)];
}

MemoryPool pool_of(int64_t bytes) {
  return bytes <= kSmallBytes ? MemoryPool::kSmall : MemoryPool::kLarge;
}

void count_allocation(MemoryStatistics& statistics, int64_t bytes) {
  statistics.allocated_bytes += bytes;
  statistics.total_allocated_bytes += bytes;
  statistics.peak_bytes = std::max(statistics.peak_bytes, statistics.allocated_bytes);
  ++statistics.allocation_count;
  ++statistics.live_allocations;
  statistics.peak_allocations = std::max(statistics.peak_allocations, statistics.live_allocations);
}

void count_free(MemoryStatistics& statistics, int64_t bytes) {
  statistics.allocated_bytes -= bytes;
  statistics.total_freed_bytes += bytes;
  ++statistics.free_count;
  --statistics.live_allocations;
}

int64_t limit_from_environment() {
  const char* text = std::getenv("NEURON_TOOLS_HBM_BYTES");
  return text == nullptr ? 0 : std::max(0LL, std::strtoll(text, nullptr, 10));
}

std::atomic<int64_t> limit_bytes{limit_from_environment()};
std::atomic<int64_t> next_ordinal{1};

// Without a limit, the host's memory is what there is.
int64_t host_memory_bytes() {
  return static_cast<int64_t>(sysconf(_SC_PAGE_SIZE)) * static_cast<int64_t>(sysconf(_SC_PHYS_PAGES));
}

std::string readable_bytes(int64_t bytes) {
  static const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024.0 && unit < 4) {
    value /= 1024.0;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

[[noreturn]] void raise_out_of_memory(int device, int64_t asked) {
  const auto in_use = [device] {
    auto& book = ledger(device);
    std::lock_guard<std::mutex> lock(book.mutex);
    ++all_of(book).out_of_memory_count;
    return all_of(book).allocated_bytes;
  }();
  remember_out_of_memory(device, std::max<int64_t>(0, memory_limit() - in_use), asked);
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "neuron:", device, " is out of memory: asked for ", readable_bytes(asked), " (",
      asked, " bytes), ", readable_bytes(in_use), " in use of ", readable_bytes(memory_limit()),
      ". The largest holders:\n", describe_holders(device, 10),
      "Use a smaller batch, activation checkpointing or a lower-precision dtype.");
}

uint64_t address_of(const Buffer& buffer) {
  return reinterpret_cast<uint64_t>(buffer.host.data());
}

void add_to_ledger(Buffer* buffer) {
  auto& book = ledger(buffer->device);
  std::lock_guard<std::mutex> lock(book.mutex);
  for (const auto pool : {MemoryPool::kAll, pool_of(buffer->bytes)}) {
    count_allocation(book.statistics[static_cast<int>(pool)], buffer->bytes);
  }
  buffer->previous = book.newest;
  if (book.newest != nullptr) {
    book.newest->next = buffer;
  }
  book.newest = buffer;
}

void remove_from_ledger(Buffer* buffer) {
  auto& book = ledger(buffer->device);
  std::lock_guard<std::mutex> lock(book.mutex);
  for (const auto pool : {MemoryPool::kAll, pool_of(buffer->bytes)}) {
    count_free(book.statistics[static_cast<int>(pool)], buffer->bytes);
  }
  if (buffer->previous != nullptr) {
    buffer->previous->next = buffer->next;
  }
  if (buffer->next != nullptr) {
    buffer->next->previous = buffer->previous;
  } else {
    book.newest = buffer->previous;
  }
}

void free_buffer(void* context) {
  auto* buffer = static_cast<Buffer*>(context);
  if (buffer->counted) {
    remove_from_ledger(buffer);
    remember_free(buffer->device, address_of(*buffer), buffer->bytes);
    record_free(buffer->device, buffer->bytes, buffer->ordinal);
  }
  delete buffer;
}

void check_limit(int device, int64_t bytes) {
  const int64_t limit = limit_bytes.load(std::memory_order_relaxed);
  if (limit == 0 || !allocations_count) {
    return;
  }
  auto& book = ledger(device);
  std::unique_lock<std::mutex> lock(book.mutex);
  const bool fits = all_of(book).allocated_bytes + bytes <= limit;
  lock.unlock();
  if (!fits) {
    raise_out_of_memory(device, bytes);
  }
}

// Nothing is cached: what is reserved, active and asked for is what is allocated, each in a segment of its own.
void fill_statistics(const MemoryStatistics& from, int pool, c10::CachingDeviceAllocator::DeviceStats& to) {
  for (auto* bytes : {&to.allocated_bytes[pool], &to.reserved_bytes[pool], &to.active_bytes[pool],
                      &to.requested_bytes[pool]}) {
    bytes->current = from.allocated_bytes;
    bytes->peak = from.peak_bytes;
    bytes->allocated = from.total_allocated_bytes;
    bytes->freed = from.total_freed_bytes;
  }
  for (auto* count : {&to.allocation[pool], &to.segment[pool], &to.active[pool]}) {
    count->current = from.live_allocations;
    count->peak = from.peak_allocations;
    count->allocated = from.allocation_count;
    count->freed = from.free_count;
  }
}

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const int device = current_device();
    check_limit(device, static_cast<int64_t>(bytes));
    return device_pointer(allocate_host_storage(bytes), device);
  }
  // Storages carry a context, so their memory cannot be freed by pointer alone.
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool initialized() override {
    return true;
  }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const int index = index_of(c10::Device(kNeuron, device));
    c10::CachingDeviceAllocator::DeviceStats to;
    for (int pool = 0; pool < kMemoryPools; ++pool) {
      fill_statistics(memory_statistics(index, static_cast<MemoryPool>(pool)), pool, to);
    }
    const auto all = memory_statistics(index);
    to.num_ooms = all.out_of_memory_count;
    to.num_device_alloc = all.allocation_count;
    to.num_device_free = all.free_count;
    return to;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    reset_accumulated_statistics(index_of(c10::Device(kNeuron, device)));
  }
  // Not marked `override`: PyTorch has it since 2.13.
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) {
    const int device = index_of(c10::Device(kNeuron, index));
    const int64_t capacity = memory_limit() > 0 ? memory_limit() : host_memory_bytes();
    const int64_t free = std::max<int64_t>(0, capacity - memory_statistics(device).allocated_bytes);
    return {static_cast<size_t>(free), static_cast<size_t>(capacity)};
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    reset_peak_statistics(index_of(c10::Device(kNeuron, device)));
  }
};

DeviceAllocator allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator);

}  // namespace

c10::Allocator* device_allocator() {
  return &allocator;
}

c10::Storage allocate_host_storage(size_t bytes) {
  if (values_are_skipped() || !values_move) {
    return reserve_host_storage(bytes);
  }
  auto* host = c10::GetAllocator(c10::kCPU);
  return c10::Storage(c10::Storage::use_byte_size_t{}, bytes, host->allocate(bytes), host, true);
}

c10::DataPtr device_pointer(c10::Storage host, int device) {
  const auto bytes = static_cast<int64_t>(host.nbytes());
  tell_allocation();
  check_limit(device, bytes);
  void* data = const_cast<void*>(host.data());
  auto* buffer = new Buffer{std::move(host), device, bytes, next_ordinal.fetch_add(1)};
  buffer->counted = allocations_count;
  if (buffer->counted) {
    buffer->site = record_allocate(device, bytes, buffer->ordinal);
    buffer->stack = remember_allocation(device, address_of(*buffer), bytes);
    add_to_ledger(buffer);
  }
  return c10::DataPtr(data, buffer, &free_buffer, neuron_device(device));
}

bool exchange_counted(bool counted) {
  return std::exchange(allocations_count, counted);
}

bool copies_move_values() {
  return values_move;
}

bool exchange_copies_move_values(bool move) {
  return std::exchange(values_move, move);
}

void mark_blank(const c10::Storage& storage, bool is_blank) {
  if (auto* buffer = buffer_of(storage.unsafeGetStorageImpl())) {
    buffer->is_blank.store(is_blank, std::memory_order_relaxed);
  }
}

Buffer* buffer_of(const c10::StorageImpl* storage) {
  const auto& pointer = storage->data_ptr();
  return pointer.get_deleter() == &free_buffer ? static_cast<Buffer*>(pointer.get_context()) : nullptr;
}

MemoryStatistics memory_statistics(int device, MemoryPool pool) {
  auto& book = ledger(device);
  std::lock_guard<std::mutex> lock(book.mutex);
  return book.statistics[static_cast<int>(pool)];
}

void reset_peak_statistics(int device) {
  auto& book = ledger(device);
  std::lock_guard<std::mutex> lock(book.mutex);
  for (auto& statistics : book.statistics) {
    statistics.peak_bytes = statistics.allocated_bytes;
    statistics.peak_allocations = statistics.live_allocations;
  }
}

void reset_accumulated_statistics(int device) {
  auto& book = ledger(device);
  std::lock_guard<std::mutex> lock(book.mutex);
  for (auto& statistics : book.statistics) {
    statistics.total_allocated_bytes = statistics.total_freed_bytes = 0;
    statistics.allocation_count = statistics.free_count = statistics.out_of_memory_count = 0;
  }
}

void set_memory_limit(int64_t bytes) {
  limit_bytes = std::max<int64_t>(0, bytes);
}

int64_t memory_limit() {
  return limit_bytes.load();
}

std::vector<MemoryHolder> memory_holders(int device) {
  using Key = std::tuple<const OperatorInfo*, uint32_t, uint32_t>;
  std::map<Key, MemoryHolder> by_site;
  auto& book = ledger(device);
  {
    std::lock_guard<std::mutex> lock(book.mutex);
    for (const Buffer* buffer = book.newest; buffer != nullptr; buffer = buffer->previous) {
      const auto& site = buffer->site;
      auto& holder = by_site[Key(site.operation, site.stack, site.module)];
      holder.site = site;
      holder.bytes += buffer->bytes;
      ++holder.allocations;
    }
  }
  std::vector<MemoryHolder> holders;
  for (auto& entry : by_site) {
    holders.push_back(entry.second);
  }
  std::stable_sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return holders;
}

std::string describe_holders(int device, size_t most) {
  std::string text;
  const auto holders = memory_holders(device);
  for (size_t i = 0; i < std::min(most, holders.size()); ++i) {
    const auto& holder = holders[i];
    char head[64];
    std::snprintf(
        head, sizeof head, "  %12s  %6" PRId64 " allocation%s  ", readable_bytes(holder.bytes).c_str(),
        holder.allocations, holder.allocations == 1 ? " " : "s");
    text += head;
    text += holder.site.operation == nullptr ? "(allocated directly)" : operator_name(*holder.site.operation);
    const std::string place = describe_place(holder.site.stack, holder.site.module);
    text += place.empty() ? "\n" : "  " + place + "\n";
  }
  if (holders.size() > most) {
    text += "  and " + std::to_string(holders.size() - most) + " smaller\n";
  }
  return text;
}

std::vector<LiveAllocation> live_allocations() {
  std::vector<LiveAllocation> live;
  for (int device = 0; device < device_count(); ++device) {
    auto& book = ledger(device);
    std::lock_guard<std::mutex> lock(book.mutex);
    for (const Buffer* buffer = book.newest; buffer != nullptr; buffer = buffer->previous) {
      live.push_back({buffer->device, buffer->bytes, buffer->ordinal, buffer->site.operation, address_of(*buffer),
                      buffer->stack});
    }
  }
  std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
  return live;
}

}  // namespace neuron
