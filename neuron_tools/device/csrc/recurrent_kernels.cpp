// Fused LSTM and GRU cells, which PyTorch asks of accelerators and the CPU lacks. Gate order and the layout
// of the workspace are those of PyTorch's CUDA kernels (aten/src/ATen/native/cuda/RNN.cu).
#include "boxed_kernel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

namespace neuron {
namespace {

using torch::jit::pop;
using torch::jit::push;

at::Tensor pop_optional(Stack* stack) {
  const auto value = pop(*stack);
  return value.isTensor() ? value.toTensor() : at::Tensor();
}

at::Tensor with_bias(const at::Tensor& gates, const at::Tensor& bias) {
  return bias.defined() ? at::add(gates, bias) : gates;
}

// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace)
void lstm_cell(const OperatorInfo&, Stack* stack, int) {
  const auto hidden_bias = pop_optional(stack);
  const auto input_bias = pop_optional(stack);
  const auto cx = pop(*stack).toTensor();
  const auto hidden_gates = with_bias(pop(*stack).toTensor(), hidden_bias);
  const auto input_gates = with_bias(pop(*stack).toTensor(), input_bias);
  const auto gates = at::add(input_gates, hidden_gates).chunk(4, 1);
  const auto in = gates[0].sigmoid();
  const auto forget = gates[1].sigmoid();
  const auto cell = gates[2].tanh();
  const auto out = gates[3].sigmoid();
  const auto cy = forget * cx + in * cell;
  push(*stack, out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1));
}

// (grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (grad_gates, grad_cx, grad_bias)
void lstm_cell_backward(const OperatorInfo&, Stack* stack, int) {
  const bool has_bias = pop(*stack).toBool();
  const auto gates = pop(*stack).toTensor().chunk(4, 1);
  const auto cy = pop(*stack).toTensor();
  const auto cx = pop(*stack).toTensor();
  const auto grad_cy = pop_optional(stack);
  auto grad_hy = pop_optional(stack);
  if (!grad_hy.defined()) {
    grad_hy = at::zeros_like(cy);
  }
  const auto &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const auto tanh_cy = cy.tanh();
  auto grad_cell_state = grad_hy * out * (1 - tanh_cy * tanh_cy);
  if (grad_cy.defined()) {
    grad_cell_state = grad_cell_state + grad_cy;
  }
  const auto grad_gates = at::cat(
      {grad_cell_state * cell * in * (1 - in), grad_cell_state * cx * forget * (1 - forget),
       grad_cell_state * in * (1 - cell * cell), grad_hy * tanh_cy * out * (1 - out)},
      1);
  push(*stack, grad_gates, grad_cell_state * forget, has_bias ? grad_gates.sum(0) : at::Tensor());
}

// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, workspace)
void gru_cell(const OperatorInfo&, Stack* stack, int) {
  const auto hidden_bias = pop_optional(stack);
  const auto input_bias = pop_optional(stack);
  const auto hx = pop(*stack).toTensor();
  const auto hidden = with_bias(pop(*stack).toTensor(), hidden_bias).chunk(3, 1);
  const auto input = with_bias(pop(*stack).toTensor(), input_bias).chunk(3, 1);
  const auto reset = (input[0] + hidden[0]).sigmoid();
  const auto update = (input[1] + hidden[1]).sigmoid();
  const auto fresh = (input[2] + reset * hidden[2]).tanh();
  push(*stack, fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, hidden[2]}, 1));
}

// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)
void gru_cell_backward(const OperatorInfo&, Stack* stack, int) {
  const bool has_bias = pop(*stack).toBool();
  const auto saved = pop(*stack).toTensor().chunk(5, 1);
  const auto grad_hy = pop(*stack).toTensor();
  const auto &reset = saved[0], &update = saved[1], &fresh = saved[2], &hx = saved[3], &hidden = saved[4];
  const auto grad_update = grad_hy * (hx - fresh) * update * (1 - update);
  const auto grad_fresh = grad_hy * (1 - update) * (1 - fresh * fresh);
  const auto grad_reset = grad_fresh * hidden * reset * (1 - reset);
  const auto grad_input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
  const auto grad_hidden = at::cat({grad_reset, grad_update, grad_fresh * reset}, 1);
  push(
      *stack, grad_input, grad_hidden, grad_hy * update, has_bias ? grad_input.sum(0) : at::Tensor(),
      has_bias ? grad_hidden.sum(0) : at::Tensor());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_thnn_fused_lstm_cell", torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&lstm_cell>>());
  library.impl(
      "_thnn_fused_lstm_cell_backward_impl",
      torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&lstm_cell_backward>>());
  library.impl("_thnn_fused_gru_cell", torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&gru_cell>>());
  library.impl(
      "_thnn_fused_gru_cell_backward", torch::CppFunction::makeFromBoxedFunction<&boxed_kernel<&gru_cell_backward>>());
}

}  // namespace neuron
