// Scaled dot-product attention as one operator, computed by the CPU's flash kernel; with dropout, which that
// kernel has not, by products and a softmax.
#include "boxed_kernel.h"
#include "generator.h"
#include "product_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <utility>
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

at::Tensor in_wide(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : in_fp32(tensor);
}

// What both passes of attention with dropout are computed from, in fp32 at least.
struct Dropout {
  at::Tensor query, key, value;
  double scale;
  at::Tensor scores, weights;
  at::Tensor share;  // of each weight: 0 where it is lost, 1 / (1 - p) elsewhere

  Dropout(
      const std::vector<c10::IValue>& tensors, const std::optional<at::Tensor>& bias, double p, bool is_causal,
      std::optional<double> given_scale, const RandomPlace& place)
      : query(in_wide(tensors[0].toTensor())),
        key(in_wide(tensors[1].toTensor())),
        value(in_wide(tensors[2].toTensor())),
        scale(given_scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))))) {
    scores = at::matmul(query * scale, key.transpose(-2, -1));
    if (is_causal) {
      const auto seen = at::ones({query.size(2), key.size(2)}, query.options().dtype(at::kBool)).tril_();
      scores.masked_fill_(seen.logical_not_(), -std::numeric_limits<double>::infinity());
    }
    if (bias.has_value()) {
      scores.add_(*bias);
    }
    weights = at::_safe_softmax(scores, -1);
    share = at::empty_like(weights).bernoulli_(1 - p, host_generator_at(place)).mul_(p < 1 ? 1 / (1 - p) : 0);
  }
};

void push_attention(
    Stack* stack, const at::Tensor& query, const at::Tensor& key, std::pair<at::Tensor, at::Tensor> made,
    std::pair<at::Tensor, at::Tensor> place) {
  push(*stack, made.first, made.second, at::Tensor(), at::Tensor(), query.size(2), key.size(2));
  push(*stack, place.first, place.second, at::Tensor());
}

// (query, key, value, bias?, dropout_p, is_causal, return_debug_mask, scale?) -> (output, logsumexp,
// cumulative q, cumulative k, max q, max k, philox seed, philox offset, debug mask)
void attention(const OperatorInfo& info, Stack* stack, int device) {
  const auto a = take_arguments(info, stack);
  const auto query = a[0].toTensor(), key = a[1].toTensor();
  const double p = a[4].toDouble();
  if (p > 0) {
    const auto place = draw_place(default_generator(device));
    const Dropout of({a[0], a[1], a[2]}, additive_mask(a[3], query), p, a[5].toBool(), a[7].toOptional<double>(), place);
    const auto output = at::matmul(of.weights * of.share, of.value).to(query.scalar_type());
    const auto number = [&](uint64_t value) {
      return at::scalar_tensor(static_cast<int64_t>(value), query.options().dtype(at::kLong));
    };
    push_attention(
        stack, query, key, {output, at::logsumexp(of.scores, -1)}, {number(place.seed), number(place.offset)});
    return;
  }
  const auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      query, key, a[2].toTensor(), p, a[5].toBool(), additive_mask(a[3], query),
      a[7].toOptional<double>());
  const auto nothing = at::empty({0}, query.options().dtype(at::kLong));
  push_attention(stack, query, key, {output, logsumexp}, {nothing, nothing.clone()});
}

// A result as the CPU's flash kernel leaves it: the heads of a token side by side.
at::Tensor by_tokens(const at::Tensor& result, at::ScalarType type) {
  return result.to(type).transpose(1, 2).contiguous().transpose(1, 2);
}

// Gradients of attention with dropout; arguments as of `attention_backward`.
void dropout_backward(const std::vector<c10::IValue>& a, Stack* stack) {
  const auto like = a[1].toTensor();
  const auto drawn = [&](size_t argument) { return static_cast<uint64_t>(a[argument].toTensor().item<int64_t>()); };
  const Dropout of(
      {a[1], a[2], a[3]}, additive_mask(a[4], like), a[12].toDouble(), a[13].toBool(), a[16].toOptional<double>(),
      {drawn(14), drawn(15)});
  const auto gradient = in_wide(a[0].toTensor());
  const auto of_value = at::matmul((of.weights * of.share).transpose(-2, -1), gradient);
  const auto of_weights = at::matmul(gradient, of.value.transpose(-2, -1)).mul_(of.share);
  const auto rows = (of_weights * of.weights).sum(-1, /*keepdim=*/true);
  const auto of_scores = (of_weights - rows).mul_(of.weights).mul_(of.scale);
  const auto type = like.scalar_type();
  push(
      *stack, by_tokens(at::matmul(of_scores, of.key), type),
      by_tokens(at::matmul(of_scores.transpose(-2, -1), of.query), type), by_tokens(of_value, type), at::Tensor());
}

// (grad_out, query, key, value, bias, grad_input_mask, out, logsumexp, cumulative q, cumulative k, max q,
// max k, dropout_p, is_causal, philox seed, philox offset, scale?) -> (query, key, value, bias gradients)
void attention_backward(const OperatorInfo& info, Stack* stack, int) {
  const auto a = take_arguments(info, stack);
  if (a[12].toDouble() > 0) {
    dropout_backward(a, stack);
    return;
  }
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

// What the CPU's flash kernel computes, and dropout; anything else takes the math path, operator by operator:
// that kernel takes batches and heads as the query has them, and broadcasts nothing but the mask.
int64_t choose_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask,
    double p, bool is_causal, std::optional<double>, bool enable_gqa) {
  const bool has_mask = mask.has_value() && mask->defined();
  const sdp::sdp_params of{query, key, value, has_mask ? mask : std::nullopt, p, is_causal, enable_gqa};
  const auto fits = [&of] {
    return sdp::check_tensor_shapes(of, false) && sdp::check_batch_size_and_num_heads_dense<false>(of, false) &&
        sdp::check_attn_mask_shape(of, false) && of.query.sym_size(3) == of.key.sym_size(3) &&
        of.key.sym_size(3) == of.value.sym_size(3) && of.key.sym_size(2) == of.value.sym_size(2);
  };
  const auto has_elements = [](const at::Tensor& tensor) {
    return tensor.sym_numel().sym_gt(0).guard_bool(__FILE__, __LINE__);  // sizes may be symbols: a graph is traced
  };
  const bool plain = !enable_gqa && !(has_mask && is_causal);
  return static_cast<int64_t>(
      plain && fits() && has_elements(query) && has_elements(key) ? sdp::SDPBackend::overrideable
                                                                   : sdp::SDPBackend::math);
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
