// The NeuronCores of this process: how many there are, and which one a thread uses.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace neuron {

inline constexpr auto kNeuron = c10::DeviceType::PrivateUse1;
inline constexpr int kMaxDevices = 64;

// NEURON_RT_NUM_CORES, else the length of NEURON_RT_VISIBLE_CORES, else one for each rank of a torchrun
// (LOCAL_WORLD_SIZE), at least the default.
int device_count();

// The default, 2 unless the target is an instance; no effect once the count has been asked for.
void set_default_device_count(int count);

// The calling thread's device; until it has one of its own, that which the program chose, else LOCAL_RANK modulo the
// device count.
int current_device();

// Throw where there is no such device.
void check_device(int64_t index);
void set_current_device(int index);

// Makes a device the thread's, and that of threads without one of their own, as TorchNeuron does.
void choose_device(int index);

// Returns the previous device; a negative index changes nothing.
int exchange_current_device(int index);

// The device's own index, or the current one for plain "neuron".
int index_of(c10::Device device);

inline c10::Device neuron_device(int index) {
  return c10::Device(kNeuron, static_cast<c10::DeviceIndex>(index));
}

}  // namespace neuron
