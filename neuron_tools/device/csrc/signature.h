// What tells two calls of an operator apart for their cost: dtypes, sizes, strides, aliasing and place of the
// tensors, and the values of everything else. Tensor values do not count.
#pragma once

#include "operator_types.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

struct _object;
using PyObject = _object;

namespace neuron {

struct Signature {
  uint64_t hash = 0;
  bool requires_grad = false;  // some tensor takes part in autograd
};

// `stack` ends with the operator's arguments.
Signature signature_of(const OperatorInfo& info, const Stack& stack);

// The same as a Python tuple, one entry for each argument; the form is told in `neuron_tools.device.native`.
// Needs the GIL. Null with a Python exception set on failure.
PyObject* signature_arguments(const OperatorInfo& info, const Stack& stack);

// As `torch` spells it.
const char* dtype_name(c10::ScalarType dtype);

}  // namespace neuron
