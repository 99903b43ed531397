// Automatic mixed precision. Boxed kernels, one for each policy, in place of PyTorch's templates: they
// compile in a quarter of the time. Which operator has which policy follows PyTorch's own accelerator lists.
#include "autocast_policies.h"
#include "device.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <initializer_list>

// Declared here because ATen/autocast_mode.h takes eight seconds to compile.
namespace at::autocast {
TORCH_API Tensor cached_cast(at::ScalarType to_type, const Tensor& arg, c10::DeviceType device_type);
TORCH_API at::ScalarType get_autocast_dtype(at::DeviceType device_type);
}  // namespace at::autocast

namespace neuron {
namespace {

using Stack = torch::jit::Stack;

enum class Policy {
  kLowerPrecision,
  kFloat32,
  kFloat32Result,  // asks for a float32 result where the user named no dtype
  kWidest,
};

template <c10::DeviceType device>
bool is_eligible(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == device && tensor.is_floating_point() &&
      tensor.scalar_type() != at::kDouble;
}

template <class Visit>
void visit_tensors(const Stack& stack, size_t count, Visit visit) {
  for (auto value = stack.end() - static_cast<std::ptrdiff_t>(count); value != stack.end(); ++value) {
    if (value->isTensor()) {
      visit(value->toTensor());
    } else if (value->isTensorList()) {
      for (const at::Tensor& tensor : value->toTensorVector()) {
        visit(tensor);
      }
    }
  }
}

template <c10::DeviceType device>
at::Tensor cast(const at::Tensor& tensor, at::ScalarType dtype) {
  return is_eligible<device>(tensor) ? at::autocast::cached_cast(dtype, tensor, device) : tensor;
}

template <c10::DeviceType device>
void cast_tensors(Stack& stack, size_t count, at::ScalarType dtype) {
  for (auto value = stack.end() - static_cast<std::ptrdiff_t>(count); value != stack.end(); ++value) {
    if (value->isTensor()) {
      *value = cast<device>(value->toTensor(), dtype);
    } else if (value->isTensorList()) {
      c10::List<at::Tensor> converted;
      for (const at::Tensor& tensor : value->toTensorVector()) {
        converted.push_back(cast<device>(tensor, dtype));
      }
      *value = std::move(converted);
    }
  }
}

template <c10::DeviceType device>
at::ScalarType widest_dtype(const Stack& stack, size_t count) {
  auto dtype = at::autocast::get_autocast_dtype(device);
  visit_tensors(stack, count, [&dtype](const at::Tensor& tensor) {
    if (is_eligible<device>(tensor) && tensor.scalar_type() == at::kFloat) {
      dtype = at::kFloat;
    }
  });
  return dtype;
}

template <c10::DeviceType device>
void ask_for_float32(const c10::FunctionSchema& schema, Stack& stack) {
  bool has_lower_precision = false;
  const size_t count = schema.arguments().size();
  visit_tensors(stack, count, [&has_lower_precision](const at::Tensor& tensor) {
    has_lower_precision |= is_eligible<device>(tensor) && tensor.scalar_type() != at::kFloat;
  });
  if (!has_lower_precision) {
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    auto& value = stack[stack.size() - count + i];
    if (schema.arguments()[i].name() == "dtype" && value.isNone()) {
      value = static_cast<int64_t>(at::kFloat);
    }
  }
}

template <c10::DeviceType device>
constexpr auto kAutocast =
    device == kNeuron ? c10::DispatchKey::AutocastPrivateUse1 : c10::DispatchKey::AutocastXLA;

template <c10::DeviceType device, Policy policy>
void autocast_kernel(const c10::OperatorHandle& handle, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::DispatchKeySet(kAutocast<device>)};
  const size_t count = handle.schema().arguments().size();
  if constexpr (policy == Policy::kLowerPrecision) {
    cast_tensors<device>(*stack, count, at::autocast::get_autocast_dtype(device));
  } else if constexpr (policy == Policy::kFloat32) {
    cast_tensors<device>(*stack, count, at::kFloat);
  } else if constexpr (policy == Policy::kFloat32Result) {
    ask_for_float32<device>(handle.schema(), *stack);
  } else {
    cast_tensors<device>(*stack, count, widest_dtype<device>(*stack, count));
  }
  handle.callBoxed(stack);
}

template <c10::DeviceType device, Policy policy>
void give_policy(torch::Library& library, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&autocast_kernel<device, policy>>());
  }
}

template <c10::DeviceType device>
void give_policies(torch::Library& library) {
  give_policy<device, Policy::kLowerPrecision>(
      library,
      {"_convolution", "conv1d", "conv2d", "conv3d", "conv1d.padding", "conv2d.padding", "conv3d.padding",
       "conv_tbc", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input", "convolution",
       "prelu", "addmm", "addmv", "addr", "matmul", "einsum", "mm", "mv", "linear", "addbmm", "baddbmm",
       "bmm", "chain_matmul", "linalg_multi_dot", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
       "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "scaled_dot_product_attention"});
  give_policy<device, Policy::kFloat32>(
      library,
      {"acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal",
       "rsqrt", "sinh", "tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus",
       "layer_norm", "native_layer_norm", "rms_norm", "group_norm", "frobenius_norm.dim", "nuclear_norm",
       "nuclear_norm.dim", "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss",
       "nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss",
       "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss",
       "multi_margin_loss", "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm",
       "logsumexp", "norm.Scalar", "norm.ScalarOpt_dim", "norm.names_ScalarOpt_dim"});
  give_policy<device, Policy::kFloat32Result>(
      library,
      {"prod", "prod.dim_int", "softmax.int", "log_softmax.int", "cumprod", "cumsum", "linalg_vector_norm",
       "sum", "sum.dim_IntList"});
  give_policy<device, Policy::kWidest>(
      library,
      {"addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put",
       "tensordot", "scatter_add", "cat", "stack"});
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, library) {
  give_policies<kNeuron>(library);
}

void register_xla_autocast() {
  static torch::Library others(torch::Library::IMPL, "_", c10::DispatchKey::AutocastXLA, __FILE__, __LINE__);
  others.fallback(torch::CppFunction::makeFallthrough());
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastXLA, __FILE__, __LINE__);
  give_policies<c10::DeviceType::XLA>(library);
}

}  // namespace neuron
