#pragma once

#include "boxed_kernel.h"

namespace neuron {

// Whether a product of so many multiplications is worth fp32 copies of its operands, which have so many elements.
bool is_large_product(int64_t multiplications, int64_t elements);

// The tensor, or its fp32 copy where it is bf16 or fp16.
at::Tensor in_fp32(const at::Tensor& tensor);

// The operators' CPU kernels; on fp32 copies where the product is large and all tensors are bf16, or all fp16.
void convolve(const OperatorInfo& info, Stack* stack, int device);
void convolve_backward(const OperatorInfo& info, Stack* stack, int device);

}  // namespace neuron
