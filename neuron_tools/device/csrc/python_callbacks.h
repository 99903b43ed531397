// Calls from the device into Python: what an operation costs, and what a new stack or name is. Each is made
// once per new thing, with the GIL, outside virtual time, and with the dispatcher as at top level.
#pragma once

#include "operator_types.h"

#include <cstdint>
#include <string>

struct _object;
using PyObject = _object;

namespace neuron {

struct Cost {
  uint32_t executable = 0;
  uint32_t flags = 0;
  int64_t duration_ns = 0;
};

// What the first `count` of several operations cost as one execution; fewer than two: they are better off alone.
struct FusedCost {
  Cost cost;
  uint32_t count = 0;
};

// Borrowed; null or None switches a callback off. Needs the GIL.
void set_callbacks(PyObject* on_signature, PyObject* on_stack, PyObject* on_name, PyObject* on_fusion);

// Keeps the calling thread's Python from sys.setprofile, sys.settrace and torch.profiler, which watch the user's
// program only; calls nest. Needs the GIL.
void hide_thread(bool hide);

// Called once, with no arguments, when memory of the device is first asked for: in a forked child again.
void set_first_allocation_callback(PyObject* callback);
void tell_allocation();

// Asks Python unless a call with the same signature was seen. `hash` is the signature's.
Cost cost_of(uint64_t hash, const OperatorInfo& info, const Stack& stack);

// Steals `frames`. Needs the GIL.
void tell_stack(uint32_t id, PyObject* frames);
void tell_name(uint32_t id, const std::string& text);

}  // namespace neuron
