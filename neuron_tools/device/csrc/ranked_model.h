// `torch.classes.neuron.SPMDModel`: a compiled program that runs on several NeuronCores of this process at once.
#pragma once

namespace neuron {

// Makes the class known to TorchScript; later calls change nothing. The operators that it calls,
// `neuron_tools::run_ranks` and `neuron_tools::example_results`, are defined in Python.
void register_ranked_model();

}  // namespace neuron
