// Random numbers of a NeuronCore: a counter-based state (seed, offset) of 16 bytes, as DTensor's random
// state tracker requires. Each random operation draws one CPU generator from the pair.
#pragma once

#include <ATen/core/Generator.h>

namespace neuron {

const at::Generator& default_generator(int device);
at::Generator make_generator(int device);

// The CPU generator with which the next random operation on `generator` computes.
at::Generator draw_host_generator(const at::Generator& generator);

}  // namespace neuron
