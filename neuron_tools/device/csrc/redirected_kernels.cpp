// Operators that PyTorch sends to accelerators only: each is computed by what the CPU has for it.
#include "boxed_kernel.h"
#include "generator.h"
#include "product_kernels.h"

#include <ATen/ops/add.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

namespace neuron {
namespace {

void convolution_overrideable(const c10::OperatorHandle&, Stack* stack) {
  static const auto& convolution = operator_info("aten::convolution", "");
  run_on_host(convolution, stack, &convolve);
}

std::vector<int64_t> bias_sizes(const at::Tensor& weight, bool transposed, int64_t groups) {
  return {transposed ? weight.size(1) * groups : weight.size(0)};
}

// (grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask):
// the CPU's operator has `bias_sizes` after the weight.
void convolution_backward_overrideable(const c10::OperatorHandle& handle, Stack* stack) {
  static const auto& backward = operator_info("aten::convolution_backward", "");
  const size_t base = stack->size() - handle.schema().arguments().size();
  const auto& arguments = *stack;
  c10::IValue sizes;
  if (arguments[base + 9].toBoolList().get(2)) {
    sizes = bias_sizes(arguments[base + 2].toTensor(), arguments[base + 6].toBool(), arguments[base + 8].toInt());
  }
  stack->insert(stack->begin() + static_cast<std::ptrdiff_t>(base + 3), sizes);
  run_on_host(backward, stack, &convolve_backward);
}

// (input, p, train) -> (output, mask), drawing from the device's generator.
void native_dropout(const OperatorInfo&, Stack* stack, int device) {
  auto train = torch::jit::pop(*stack).toOptional<bool>();
  const double p = torch::jit::pop(*stack).toDouble();
  const at::Tensor input = torch::jit::pop(*stack).toTensor();
  if (!train.value_or(true)) {
    torch::jit::push(*stack, at::mul(input, 1), at::ones_like(input, at::kBool));
    return;
  }
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  mask.bernoulli_(1 - p, draw_host_generator(default_generator(device)));
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  torch::jit::push(*stack, at::mul(input, mask).mul_(scale), mask);
}

// (self, bins, min, max). Accelerators count integers, the CPU does not, and libraries rely on the device.
void histc(const OperatorInfo& info, Stack* stack, int device) {
  const size_t base = stack->size() - info.argument_count;
  const at::Tensor self = (*stack)[base].toTensor();
  if (self.is_floating_point()) {
    call_cpu_kernel(info, stack, device);
    return;
  }
  (*stack)[base] = self.to(at::kDouble);
  call_cpu_kernel(info, stack, device);
  stack->back() = stack->back().toTensor().to(self.scalar_type());
}

// (repeats, output_size). The host reads how long the result is where it is not told, as CUDA's kernel does: the
// device fills results of known sizes.
void repeat_interleave(const c10::OperatorHandle& handle, Stack* stack) {
  c10::IValue& output_size = stack->back();
  if (output_size.isNone()) {
    output_size = stack->end()[-2].toTensor().sum().item<int64_t>();
  }
  run_on_host(operator_info(handle), stack, &call_cpu_kernel);
}

// (self, weights, minlength). Likewise: the host reads how far there is to count.
void bincount(const c10::OperatorHandle& handle, Stack* stack) {
  const at::Tensor self = stack->end()[-3].toTensor();
  const int64_t needed = self.numel() > 0 ? self.max().item<int64_t>() + 1 : 0;
  if (stack->back().toInt() >= 0) {  // the operator itself refuses less than none
    stack->back() = std::max(stack->back().toInt(), needed);
  }
  run_on_host(operator_info(handle), stack, &call_cpu_kernel);
}

// (self, dim, half_to_float) of softmax and its logarithm: accelerators give float32 for float16 where asked, the CPU
// does not.
void halves_softmax(const OperatorInfo& info, Stack* stack, int device) {
  const size_t base = stack->size() - info.argument_count;
  if (stack->back().toBool()) {
    (*stack)[base] = (*stack)[base].toTensor().to(at::kFloat);
    stack->back() = false;
  }
  call_cpu_kernel(info, stack, device);
}

// (grad_output, output, dim, input_dtype): the gradient of the same, float16 again.
void halves_softmax_backward(const OperatorInfo& info, Stack* stack, int device) {
  const size_t base = stack->size() - info.argument_count;
  const auto wanted = stack->back().toScalarType();
  const auto computed = (*stack)[base].toTensor().scalar_type();
  stack->back() = computed;
  call_cpu_kernel(info, stack, device);
  if (wanted != computed) {
    stack->back() = stack->back().toTensor().to(wanted);
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_overrideable>());
  library.impl(
      "convolution_backward_overrideable",
      torch::CppFunction::makeFromBoxedFunction<&convolution_backward_overrideable>());
  library.impl("native_dropout", torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&native_dropout>>());
  library.impl("histc", torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&histc>>());
  for (const char* name : {"_softmax", "_log_softmax"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&halves_softmax>>());
  }
  for (const char* name : {"_softmax_backward_data", "_log_softmax_backward_data"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&halves_softmax_backward>>());
  }
  library.impl("repeat_interleave.Tensor", torch::CppFunction::makeFromBoxedFunction<&repeat_interleave>());
  library.impl("bincount", torch::CppFunction::makeFromBoxedFunction<&bincount>());
}

}  // namespace neuron
