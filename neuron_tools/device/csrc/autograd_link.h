// Ties backward work to the forward operation it belongs to, and threads to small numbers.
#pragma once

#include <cstdint>

namespace neuron {

struct ForwardOperation {
  int64_t sequence = -1;  // autograd's sequence number of the node; -1 outside backward
  uint32_t thread = 0;    // ordinal of the thread that ran the forward operation
};

// Watches autograd's nodes run from here on; `stop_watching_backward` ends it.
void watch_backward();
void stop_watching_backward();

// The forward operation whose gradient this thread is computing. Gradient sums between nodes and into
// parameters belong to no node: where no Python of their own called them (`is_worker`) they count to the last one.
ForwardOperation current_forward(bool is_worker);

// Whether a node runs on this thread and calls no Python: `stack` is that of whoever called for the backward pass.
bool is_autograds_own(uint32_t stack);

// Whether this thread runs a backward pass, in a node or between two: in hooks, in sums of gradients.
bool in_backward_pass();

// The number of the node that autograd made last on this thread; -1 before the first.
int64_t last_made_sequence();

// Ordinal of the calling thread, in order of first appearance since `reset_threads`.
uint32_t thread_ordinal();
void reset_threads();

}  // namespace neuron
