// Registration of the boxed kernels, which waits until every other kernel is in place.
#pragma once

namespace neuron {

// Registers the boxed kernel on each ATen operator that has a CPU kernel and none of ours: a back end's
// fallback is its weakest entry, and structured operators would arrive as their `out` form. Returns how many.
int register_boxed_kernels();

}  // namespace neuron
