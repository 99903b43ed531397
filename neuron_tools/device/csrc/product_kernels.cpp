// Products of bf16 and fp16 tensors are computed in fp32 and rounded once, as the Tensor engine accumulates.
// A CPU without instructions for narrow types would take up to two hundred times as long for the same values.
#include "product_kernels.h"

#include <torch/library.h>

#include <algorithm>
#include <optional>

namespace neuron {
namespace {

bool is_narrow(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

// The narrow type that all tensors among the arguments have; none where they differ, which the CPU refuses.
std::optional<at::ScalarType> common_narrow_type(const c10::IValue* first, const c10::IValue* last) {
  std::optional<at::ScalarType> common;
  for (; first != last; ++first) {
    if (!first->isTensor() || !first->toTensor().defined()) {
      continue;
    }
    const auto type = first->toTensor().scalar_type();
    if (!is_narrow(type) || common.value_or(type) != type) {
      return std::nullopt;
    }
    common = type;
  }
  return common;
}

void convert_tensors(c10::IValue* first, c10::IValue* last, at::ScalarType type) {
  std::for_each(first, last, [type](c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) {
      value = value.toTensor().to(type);
    }
  });
}

}  // namespace

at::Tensor in_fp32(const at::Tensor& tensor) {
  return is_narrow(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
}

void compute_in_fp32(const OperatorInfo& info, Stack* stack, int device) {
  c10::IValue* first = stack->data() + stack->size() - info.argument_count;
  c10::IValue* last = stack->data() + stack->size();
  const auto narrow = common_narrow_type(first, last);
  if (narrow) {
    convert_tensors(first, last, at::kFloat);
  }
  call_cpu_kernel(info, stack, device);
  if (narrow) {
    last = stack->data() + stack->size();
    convert_tensors(last - info.return_count, last, *narrow);
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  for (const char* name : {"mm", "addmm", "bmm", "baddbmm"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&compute_in_fp32>>());
  }
}

}  // namespace neuron
