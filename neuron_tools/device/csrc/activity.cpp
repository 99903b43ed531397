#include "activity.h"

#include "device.h"
#include "spin_lock.h"

#include <mutex>
#include <utility>

namespace neuron {
namespace {

struct Core {
  SpinLock lock;
  CoreActivity counted;
};

// Never destroyed: operators may run after static destructors.
Core& core(int device) {
  static auto* cores = new std::array<Core, kMaxDevices>;
  return (*cores)[device];
}

}  // namespace

void count_untimed_execution(int device) {
  auto& on = core(device);
  std::lock_guard<SpinLock> lock(on.lock);
  ++on.counted.untimed_executions;
}

void count_failed_execution(int device) {
  auto& on = core(device);
  std::lock_guard<SpinLock> lock(on.lock);
  ++on.counted.failed_executions;
}

void count_copy(int device, int64_t bytes, bool to_device) {
  auto& on = core(device);
  std::lock_guard<SpinLock> lock(on.lock);
  (to_device ? on.counted.bytes_to_device : on.counted.bytes_to_host) += bytes;
}

void count_execution(int device, uint32_t executable, int64_t busy_ns, int64_t latency_ns) {
  auto& on = core(device);
  std::lock_guard<SpinLock> lock(on.lock);
  auto& counted = on.counted;
  if (executable >= counted.executions.size()) {
    counted.executions.resize(executable + 1);
  }
  ++counted.executions[executable];
  ++counted.latency[latency_bucket(latency_ns)];
  counted.busy_ns += busy_ns;
}

CoreActivity take_activity(int device) {
  auto& on = core(device);
  CoreActivity taken;
  std::lock_guard<SpinLock> lock(on.lock);
  std::swap(taken, on.counted);
  return taken;
}

}  // namespace neuron
