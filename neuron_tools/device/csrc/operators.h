// What the boxed kernels and the recorder know of an ATen operator, worked out once from its schema.
#pragma once

#include "operator_types.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace neuron {

// Integers that stand for something else.
enum class ArgumentKind : uint8_t { kValue, kDtype, kLayout, kMemoryFormat };

struct OperatorInfo {
  explicit OperatorInfo(const c10::OperatorHandle& handle);

  const c10::OperatorHandle handle;
  std::string name;  // "aten::add.Tensor"
  uint64_t hash = 0;
  int argument_count = 0;
  std::vector<ArgumentKind> argument_kinds;
  int return_count = 0;
  uint64_t written_arguments = 0;  // bit i: argument i is written
  int generator_argument = -1;
  bool is_view = false;  // gives back an alias of an input: no device work
  bool only_writes = false;  // its results are the arguments that it writes, in place and in their shapes
  bool changes_geometry = false;  // of an argument, in place, as `transpose_` and `resize_` do
  bool needs_values = false;  // the result's shape or value is needed on the host: it waits for the device
  bool takes_host_indices = false;  // index operators accept CPU index tensors
  bool takes_masks = false;  // where an index is a mask, its values choose the result's shape
  mutable std::atomic<uint64_t> announced_name{0};  // recording number and name id, see names.h
};

// Whether the host needs values of this call's results, or of its arguments, before it can go on. `stack` ends with the
// arguments.
bool call_needs_values(const OperatorInfo& info, const Stack& stack);

// The same object for every call with the same operator.
const OperatorInfo& operator_info(const c10::OperatorHandle& handle);
const OperatorInfo& operator_info(const char* name, const char* overload);

}  // namespace neuron
