// What PyTorch's generic accelerator code asks of the back end.
#include "alias.h"
#include "device.h"
#include "generator.h"
#include "pinned_memory.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace neuron {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return device_count() > 0;
  }
  void init() const override {}
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    set_current_device(device);
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device());
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(exchange_current_device(device));
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(exchange_current_device(device < device_count() ? device : -1));
  }
  bool isPinnedPtr(const void* address) const override {
    return is_pinned(address);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }
  at::Device getDeviceFromPtr(void*) const override {
    return neuron_device(current_device());
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return make_generator(device);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_device_storage(storage, bytes);
  }
};

const bool hooks_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace
}  // namespace neuron
