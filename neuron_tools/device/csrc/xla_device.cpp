#include "xla_device.h"

#include "autocast_policies.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace neuron {
namespace {

// One device, and no streams: whatever waits, waits for the `neuron` device below.
class XlaGuard final : public c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::XLA> {
 public:
  c10::Device exchangeDevice(c10::Device) const override {
    return getDevice();
  }
  c10::Device getDevice() const override {
    return c10::Device(c10::DeviceType::XLA, 0);
  }
};

}  // namespace

void register_xla_device() {
  if (c10::impl::hasDeviceGuardImpl(c10::DeviceType::XLA)) {
    return;
  }
  static const XlaGuard guard;
  c10::impl::registerDeviceGuard(c10::DeviceType::XLA, &guard);
  register_xla_autocast();
}

}  // namespace neuron
