// Random numbers of a NeuronCore: a counter-based state (seed, offset) of 16 bytes, as DTensor's random
// state tracker requires. Each random operation draws one CPU generator from the pair.
#pragma once

#include <ATen/core/Generator.h>

namespace neuron {

const at::Generator& default_generator(int device);
at::Generator make_generator(int device);

// What a random operation draws its numbers from: the same pair gives the same numbers again.
struct RandomPlace {
  uint64_t seed;
  uint64_t offset;
};

// The place of the next random operation on `generator`, which moves on behind it.
RandomPlace draw_place(const at::Generator& generator);

// A CPU generator that begins at a place.
at::Generator host_generator_at(const RandomPlace& place);

// The CPU generator with which the next random operation on `generator` computes.
at::Generator draw_host_generator(const at::Generator& generator);

}  // namespace neuron
