#pragma once

#include "boxed_kernel.h"

namespace neuron {

// The tensor, or its fp32 copy where it is bf16 or fp16.
at::Tensor in_fp32(const at::Tensor& tensor);

// The operator's CPU kernel, on fp32 copies where all its tensors are bf16 or all are fp16.
void compute_in_fp32(const OperatorInfo& info, Stack* stack, int device);

}  // namespace neuron
