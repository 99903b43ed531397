// Devices, streams and events as PyTorch's device guard sees them. Nothing ever waits for real: streams and
// events hold virtual times, and a synchronisation moves the host's virtual clock.
#include "device.h"
#include "host_clock.h"
#include "recorder.h"
#include "timeline.h"
#include "waiting.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>

namespace neuron {
namespace {

struct EventTime {
  bool timed = false;  // `ns` is virtual time, else wall time
  int64_t ns = 0;
};

// When a stream will have done all that it was asked to do.
int64_t finish_ns(int device, int stream) {
  run_waiting(device);
  return stream_finish_ns(device, stream);
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = kNeuron;

  c10::DeviceType type() const override {
    return kNeuron;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    return neuron_device(exchange_current_device(device.index()));
  }
  c10::Device getDevice() const override {
    return neuron_device(current_device());
  }
  void setDevice(c10::Device device) const override {
    exchange_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() < device_count()) {
      exchange_current_device(device.index());
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    return {};
  }

  c10::Stream getStream(c10::Device device) const override {
    return stream_of(device, current_stream(index_of(device)));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_of(device, 0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return stream_of(device, next_pool_stream());
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return stream_of(device, next_pool_stream());
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const int device = index_of(stream.device());
    const auto previous = stream_of(stream.device(), current_stream(device));
    set_current_stream(device, static_cast<int>(stream.id()));
    return previous;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(static_cast<intptr_t>(stream.id()));
  }
  bool queryStream(const c10::Stream& stream) const override {
    return !timing_is_on() || has_passed(finish_ns(index_of(stream.device()), stream_number(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    const int device = index_of(stream.device());
    record_synchronize(device, stream_number(stream), finish_ns(device, stream_number(stream)));
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    const int device = index < 0 ? current_device() : index;
    run_waiting(device);
    record_synchronize(device, current_stream(device), device_finish_ns(device));
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) {
      *event = new EventTime;
    }
    auto* time = static_cast<EventTime*>(*event);
    time->timed = timing_is_on();
    time->ns = wall_now_ns();
    if (time->timed) {
      time->ns = event_time() >= 0
          ? event_time()
          : std::max(host_now_ns(), finish_ns(index_of(stream.device()), stream_number(stream)));
    }
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr && static_cast<EventTime*>(event)->timed) {
      run_waiting(index_of(stream.device()));
      hold_stream_until(index_of(stream.device()), stream_number(stream), static_cast<EventTime*>(event)->ns);
    }
  }
  bool queryEvent(void* event) const override {
    const auto* time = static_cast<EventTime*>(event);
    return time == nullptr || !time->timed || !timing_is_on() || has_passed(time->ns);
  }
  void synchronizeEvent(void* event) const override {
    const auto* time = static_cast<EventTime*>(event);
    if (time != nullptr && time->timed) {
      record_synchronize(current_device(), current_stream(current_device()), time->ns);
    }
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<EventTime*>(event);
  }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    const auto* from = static_cast<EventTime*>(first);
    const auto* to = static_cast<EventTime*>(second);
    TORCH_CHECK(
        from != nullptr && to != nullptr, "Both events must be recorded before their elapsed time can be asked.");
    return static_cast<double>(to->ns - from->ns) * 1e-6;
  }

 private:
  static c10::Stream stream_of(c10::Device device, int number) {
    return c10::Stream(c10::Stream::UNSAFE, neuron_device(index_of(device)), number);
  }
  static int stream_number(const c10::Stream& stream) {
    return static_cast<int>(stream.id()) % kStreams;
  }
  // A poll costs host time like a dispatch: a loop that polls must come to an end under the fixed clock.
  static bool has_passed(int64_t time_ns) {
    return host_dispatch_ns() >= time_ns;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace
}  // namespace neuron
