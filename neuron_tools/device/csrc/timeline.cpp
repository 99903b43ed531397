#include "timeline.h"

#include "device.h"
#include "spin_lock.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

namespace neuron {
namespace {

struct CoreClocks {
  int64_t compute_ns = 0;
  int64_t copy_ns = 0;
  std::array<int64_t, kStreams> stream_ns{};
};

SpinLock timeline_lock;
std::array<CoreClocks, kMaxDevices> cores;
int64_t launch_overhead_ns = 0;
double copy_bytes_per_second = 0;  // 0: copies take their latency only
int64_t copy_latency_ns = 0;

std::atomic<int> pool_position{0};
thread_local std::array<int, kMaxDevices> thread_streams{};
thread_local int64_t thread_event_ns = -1;

int64_t copy_duration_ns(int64_t bytes) {
  if (copy_bytes_per_second <= 0) {
    return copy_latency_ns;
  }
  return copy_latency_ns + static_cast<int64_t>(static_cast<double>(bytes) / copy_bytes_per_second * 1e9);
}

int64_t& stream_clock(int device, int stream) {
  return cores[device].stream_ns[stream % kStreams];
}

}  // namespace

void reset_timeline() {
  std::lock_guard<SpinLock> lock(timeline_lock);
  cores.fill(CoreClocks{});
}

Interval place_compute(
    int device, int stream, int64_t issued_ns, int64_t duration_ns, c10::function_ref<void(const Interval&)> placed) {
  std::lock_guard<SpinLock> lock(timeline_lock);
  auto& core = cores[device];
  auto& queue = stream_clock(device, stream);
  const int64_t start = std::max({queue, core.compute_ns, issued_ns}) + launch_overhead_ns;
  queue = core.compute_ns = start + duration_ns;
  const Interval interval{start, queue};
  placed(interval);
  return interval;
}

int64_t next_start_ns(int device, int stream, int64_t issued_ns) {
  std::lock_guard<SpinLock> lock(timeline_lock);
  return std::max({stream_clock(device, stream), cores[device].compute_ns, issued_ns});
}

Interval place_copy(int device, int stream, int64_t issued_ns, int64_t bytes) {
  std::lock_guard<SpinLock> lock(timeline_lock);
  auto& core = cores[device];
  auto& queue = stream_clock(device, stream);
  const int64_t start = std::max({queue, core.copy_ns, issued_ns});
  queue = core.copy_ns = start + copy_duration_ns(bytes);
  return {start, queue};
}

int64_t stream_finish_ns(int device, int stream) {
  std::lock_guard<SpinLock> lock(timeline_lock);
  return stream_clock(device, stream);
}

int64_t device_finish_ns(int device) {
  std::lock_guard<SpinLock> lock(timeline_lock);
  const auto& core = cores[device];
  const int64_t streams = *std::max_element(core.stream_ns.begin(), core.stream_ns.end());
  return std::max({streams, core.compute_ns, core.copy_ns});
}

int64_t exchange_event_time(int64_t time_ns) {
  return std::exchange(thread_event_ns, time_ns);
}

int64_t event_time() {
  return thread_event_ns;
}

void hold_stream_until(int device, int stream, int64_t time_ns) {
  std::lock_guard<SpinLock> lock(timeline_lock);
  auto& queue = stream_clock(device, stream);
  queue = std::max(queue, time_ns);
}

void set_launch_overhead_ns(int64_t overhead_ns) {
  std::lock_guard<SpinLock> lock(timeline_lock);
  launch_overhead_ns = std::max<int64_t>(0, overhead_ns);
}

void set_copy_model(double bytes_per_second, int64_t latency_ns) {
  std::lock_guard<SpinLock> lock(timeline_lock);
  copy_bytes_per_second = bytes_per_second;
  copy_latency_ns = std::max<int64_t>(0, latency_ns);
}

int current_stream(int device) {
  return thread_streams[device];
}

void set_current_stream(int device, int stream) {
  thread_streams[device] = stream % kStreams;
}

int next_pool_stream() {
  return 1 + pool_position.fetch_add(1) % (kStreams - 1);
}

}  // namespace neuron
