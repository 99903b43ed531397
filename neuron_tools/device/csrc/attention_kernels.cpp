// Scaled dot-product attention as one operator, computed by the CPU's flash kernel.
#include "boxed_kernel.h"
#include "product_kernels.h"

#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <limits>
#include <vector>

namespace neuron {
namespace {

using torch::jit::push;

// The CPU kernel adds its mask: a boolean one becomes 0 where it allows and -inf where it forbids.
std::optional<at::Tensor> additive_mask(const c10::IValue& value, const at::Tensor& query) {
  if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().numel() == 0) {
    return std::nullopt;
  }
  const auto mask = value.toTensor();
  if (mask.scalar_type() != at::kBool) {
    return mask.to(query.scalar_type());
  }
  return at::zeros(mask.sizes(), query.options()).masked_fill_(mask.logical_not(), -std::numeric_limits<double>::infinity());
}

std::vector<c10::IValue> take_arguments(const OperatorInfo& info, Stack* stack) {
  const auto first = stack->end() - info.argument_count;
  std::vector<c10::IValue> arguments(first, stack->end());
  stack->erase(first, stack->end());
  return arguments;
}

// (query, key, value, bias?, dropout_p, is_causal, return_debug_mask, scale?) -> (output, logsumexp,
// cumulative q, cumulative k, max q, max k, philox seed, philox offset, debug mask)
void attention(const OperatorInfo& info, Stack* stack, int) {
  const auto a = take_arguments(info, stack);
  const auto query = a[0].toTensor(), key = a[1].toTensor();
  const auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      query, key, a[2].toTensor(), a[4].toDouble(), a[5].toBool(), additive_mask(a[3], query),
      a[7].toOptional<double>());
  const auto nothing = at::empty({0}, query.options().dtype(at::kLong));
  push(*stack, output, logsumexp, at::Tensor(), at::Tensor(), query.size(2), key.size(2));
  push(*stack, nothing, nothing.clone(), at::Tensor());
}

// (grad_out, query, key, value, bias, grad_input_mask, out, logsumexp, cumulative q, cumulative k, max q,
// max k, dropout_p, is_causal, philox seed, philox offset, scale?) -> (query, key, value, bias gradients)
void attention_backward(const OperatorInfo& info, Stack* stack, int) {
  const auto a = take_arguments(info, stack);
  const auto type = a[1].toTensor().scalar_type();
  const int64_t elements = a[1].toTensor().numel();
  const bool is_large = is_large_product(elements * a[2].toTensor().size(2), elements);
  const auto operand = [&](size_t argument) {
    const auto tensor = a[argument].toTensor();
    return is_large ? in_fp32(tensor) : tensor;
  };
  const auto query = operand(1);
  const auto [grad_query, grad_key, grad_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      operand(0), query, operand(2), operand(3), operand(6), a[7].toTensor(), a[12].toDouble(), a[13].toBool(),
      additive_mask(a[4], query), a[16].toOptional<double>());
  push(*stack, grad_query.to(type), grad_key.to(type), grad_value.to(type), at::Tensor());
}

// What the CPU's flash kernel computes; anything else takes the math path, operator by operator.
int64_t choose_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask,
    double dropout_p, bool is_causal, std::optional<double>, bool enable_gqa) {
  const bool has_mask = mask.has_value() && mask->defined();
  const bool same_width = query.dim() == 4 && query.size(3) == key.size(3) && key.size(3) == value.size(3);
  const auto has_elements = [](const at::Tensor& tensor) {
    return tensor.sym_numel().sym_gt(0).guard_bool(__FILE__, __LINE__);  // sizes may be symbols: a graph is traced
  };
  const bool not_empty = has_elements(query) && has_elements(key);
  const bool plain = dropout_p == 0.0 && !enable_gqa && !(has_mask && (mask->requires_grad() || is_causal));
  return static_cast<int64_t>(
      same_width && not_empty && plain ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl(
      "_scaled_dot_product_fused_attention_overrideable",
      torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&attention>>());
  library.impl(
      "_scaled_dot_product_fused_attention_overrideable_backward",
      torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&attention_backward>>());
}

}  // namespace neuron

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &neuron::choose_attention)
}
