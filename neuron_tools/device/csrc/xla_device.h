// What stock PyTorch lacks for tensors on the device `xla`, whose operations Python records.
#pragma once

namespace neuron {

// Registers a device guard, which autograd and factory functions ask for, and the operators' mixed-precision
// policies; does nothing where a guard is there already (another package's), or the second time.
void register_xla_device();

}  // namespace neuron
