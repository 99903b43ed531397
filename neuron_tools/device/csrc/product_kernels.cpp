// Large products of bf16 and fp16 tensors are computed in fp32 and rounded once, as the Tensor engine accumulates.
// A CPU without instructions for narrow types takes up to two hundred times as long. What is small is left to the
// CPU's own kernels, so that it has the same bits there.
#include "product_kernels.h"

#include <torch/library.h>

#include <algorithm>
#include <optional>

namespace neuron {
namespace {

constexpr int64_t kLargeProduct = int64_t{1} << 26;  // about 50 ms in the CPU's narrow kernels
constexpr int64_t kUsesOfAnElement = 64;  // copying is cheap beside so many multiplications an element

bool is_narrow(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

bool is_tensor(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined();
}

// The narrow type that all tensors among the arguments have; none where they differ, which the CPU refuses.
std::optional<at::ScalarType> common_narrow_type(const c10::IValue* first, const c10::IValue* last) {
  std::optional<at::ScalarType> common;
  for (; first != last; ++first) {
    if (!is_tensor(*first)) {
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

void convert_tensors(c10::IValue* first, int count, at::ScalarType type) {
  std::for_each(first, first + count, [type](c10::IValue& value) {
    if (is_tensor(value)) {
      value = value.toTensor().to(type);
    }
  });
}

// The last so many values of the stack: an operator's arguments, or its results.
c10::IValue* last_values(Stack* stack, int count) {
  return stack->data() + stack->size() - count;
}

void compute_product(const OperatorInfo& info, Stack* stack, int device, int64_t multiplications, int64_t elements) {
  c10::IValue* arguments = last_values(stack, info.argument_count);
  std::optional<at::ScalarType> narrow;
  if (is_large_product(multiplications, elements)) {
    narrow = common_narrow_type(arguments, arguments + info.argument_count);
  }
  if (!narrow) {
    call_cpu_kernel(info, stack, device);
    return;
  }
  convert_tensors(arguments, info.argument_count, at::kFloat);
  call_cpu_kernel(info, stack, device);
  convert_tensors(last_values(stack, info.return_count), info.return_count, *narrow);
}

// (..., rows, depth) times (..., depth, columns), which begin at this argument.
template <int Left>
void matrix_product(const OperatorInfo& info, Stack* stack, int device) {
  const c10::IValue* arguments = last_values(stack, info.argument_count);
  const auto left = arguments[Left].toTensor(), right = arguments[Left + 1].toTensor();
  const int64_t columns = right.dim() > 0 ? right.size(-1) : 1;
  compute_product(info, stack, device, left.numel() * columns, left.numel() + right.numel());
}

// Each place of the (batch, channels, ...) tensor meets the whole filter.
void convolution(const OperatorInfo& info, Stack* stack, int device, int places, int filter) {
  const c10::IValue* arguments = last_values(stack, info.argument_count);
  const auto tensor = arguments[places].toTensor(), weight = arguments[filter].toTensor();
  const int64_t count = tensor.numel() / std::max<int64_t>(tensor.size(1), 1);
  compute_product(info, stack, device, count * weight.numel(), tensor.numel() + weight.numel());
}

}  // namespace

bool is_large_product(int64_t multiplications, int64_t elements) {
  return multiplications >= std::max(kLargeProduct, kUsesOfAnElement * elements);
}

at::Tensor in_fp32(const at::Tensor& tensor) {
  return is_narrow(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
}

void convolve(const OperatorInfo& info, Stack* stack, int device) {
  convolution(info, stack, device, 0, 1);
}

void convolve_backward(const OperatorInfo& info, Stack* stack, int device) {
  convolution(info, stack, device, 0, 2);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("mm", torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&matrix_product<0>>>());
  library.impl("bmm", torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&matrix_product<0>>>());
  library.impl("addmm", torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&matrix_product<1>>>());
  library.impl("baddbmm", torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&matrix_product<1>>>());
}

}  // namespace neuron
