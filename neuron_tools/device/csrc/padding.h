// How far the sequences of a batch are padded, seen where the batch is copied to the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace neuron {

// Rows, their length, the longest that is needed and the mean, in 16 bits each from the highest; 0 where nothing is
// padded. A row is padded where it ends with at least two positions that are equal bytes, the same in all such rows.
// Looks at integers [rows, length] and floating-point numbers [rows, length, features]; linear in the padding.
int64_t padding_of(const at::Tensor& batch);

}  // namespace neuron
