// The same bytes seen as a device tensor and as a CPU tensor; nothing here copies.
#pragma once

#include "device.h"

#include <ATen/core/Tensor.h>

namespace neuron {

inline bool is_on_device(const at::Tensor& tensor) { return tensor.device().type() == kNeuron; }

// A CPU tensor over a neuron tensor's memory, with its geometry.
at::Tensor host_alias(const at::Tensor& device_tensor);

// A neuron tensor over a storage that is already on the device, with `host_tensor`'s geometry.
at::Tensor on_device_storage(const at::Tensor& host_tensor, c10::Storage device_storage);

// Makes the memory of a CPU tensor device memory.
c10::Storage adopt_storage(const c10::Storage& host_storage, int device);
at::Tensor adopt(const at::Tensor& host_tensor, int device);

// Brings a neuron tensor up to what a kernel did to its CPU alias (`out=`, `resize_`).
void follow_host_alias(const at::Tensor& device_tensor, const at::Tensor& host_tensor);

// Replaces a device storage's memory by `bytes` bytes, keeping what fits.
void resize_device_storage(const c10::Storage& storage, size_t bytes);

}  // namespace neuron
