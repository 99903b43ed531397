#include "pinned_memory.h"

#include "device.h"

#include <ATen/core/CachingHostAllocator.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

namespace neuron {
namespace {

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* address = nullptr;
    const size_t reserved = std::max<size_t>(bytes, 1);
    TORCH_CHECK_WITH(
        OutOfMemoryError, posix_memalign(&address, 64, reserved) == 0, "The host cannot give ", bytes,
        " bytes of pinned memory.");
    std::lock_guard<std::mutex> lock(mutex_);
    live_[static_cast<const char*>(address)] = reserved;
    return {address, address, &release, c10::Device(c10::kCPU)};
  }
  bool owns(const void* address) {
    const auto* wanted = static_cast<const char*>(address);
    std::lock_guard<std::mutex> lock(mutex_);
    auto after = live_.upper_bound(wanted);
    if (after == live_.begin()) {
      return false;
    }
    --after;
    return wanted < after->first + after->second;
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool record_event(void*, void*, c10::Stream) override {
    return true;
  }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    return {};
  }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}

 private:
  static void release(void* address);

  std::mutex mutex_;
  std::map<const char*, size_t> live_;
};

PinnedAllocator& instance() {
  static auto* allocator = new PinnedAllocator;
  return *allocator;
}

void PinnedAllocator::release(void* address) {
  auto& self = instance();
  {
    std::lock_guard<std::mutex> lock(self.mutex_);
    self.live_.erase(static_cast<const char*>(address));
  }
  std::free(address);
}

const bool pinned_memory_registered = [] {
  at::setHostAllocator(kNeuron, &instance());
  return true;
}();

}  // namespace

c10::Allocator* pinned_allocator() {
  return &instance();
}

bool is_pinned(const void* address) {
  return instance().owns(address);
}

}  // namespace neuron
