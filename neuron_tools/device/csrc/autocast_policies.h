// Automatic mixed precision for devices other than `neuron`, with the same policies.
#pragma once

namespace neuron {

void register_xla_autocast();

}  // namespace neuron
