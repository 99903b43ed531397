// Page-locked host memory. Here every host page can be read by the device, so it is plain memory whose
// addresses are remembered, which is what `Tensor.is_pinned` asks.
#pragma once

#include <c10/core/Allocator.h>

namespace neuron {

c10::Allocator* pinned_allocator();
bool is_pinned(const void* address);

}  // namespace neuron
