"""The fused cells that recurrent layers call on a device, and their backward.

Gate order and formulas: the documentation of `torch.nn.LSTM` and `torch.nn.GRU`; what is kept for the
backward pass: `aten/src/ATen/native/cuda/RNN.cu`.
"""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten


def _gates(input_gates: Any, hidden_gates: Any, input_bias: Any, hidden_bias: Any) -> tuple[Any, Any]:
    if input_bias is not None:
        input_gates = input_gates + input_bias
    return input_gates, hidden_gates if hidden_bias is None else hidden_gates + hidden_bias


@decomposes(_aten._thnn_fused_lstm_cell.default)
def _lstm_cell(
    input_gates: Any, hidden_gates: Any, cx: Any, input_bias: Any = None, hidden_bias: Any = None
) -> tuple[Any, Any, Any]:
    """New hidden state, new cell state, and the activated gates."""
    first, second = _gates(input_gates, hidden_gates, input_bias, hidden_bias)
    admit, forget, cell, out = (first + second).chunk(4, 1)
    admit, forget, cell, out = admit.sigmoid(), forget.sigmoid(), cell.tanh(), out.sigmoid()
    state = forget * cx + admit * cell
    return out * state.tanh(), state, torch.cat([admit, forget, cell, out], 1)


@decomposes(_aten._thnn_fused_lstm_cell_backward_impl.default)
def _lstm_cell_backward(
    grad_hy: Any, grad_cy: Any, cx: Any, cy: Any, workspace: Any, has_bias: bool
) -> tuple[Any, Any, Any]:
    """Gradients of the gates (before activation), of the cell state and of a bias."""
    admit, forget, cell, out = workspace.chunk(4, 1)
    squashed = cy.tanh()
    state = torch.zeros_like(cy) if grad_cy is None else grad_cy
    parts_out = torch.zeros_like(cy)
    if grad_hy is not None:
        state = state + grad_hy * out * (1 - squashed * squashed)
        parts_out = grad_hy * squashed * out * (1 - out)
    gates = torch.cat(
        [
            state * cell * admit * (1 - admit),
            state * cx * forget * (1 - forget),
            state * admit * (1 - cell * cell),
            parts_out,
        ],
        1,
    )
    return gates, state * forget, gates.sum(0) if has_bias else None


@decomposes(_aten._thnn_fused_gru_cell.default)
def _gru_cell(
    input_gates: Any, hidden_gates: Any, hx: Any, input_bias: Any = None, hidden_bias: Any = None
) -> tuple[Any, Any]:
    """New hidden state, and what the backward pass needs: reset, update, new, old state, hidden part."""
    first, second = _gates(input_gates, hidden_gates, input_bias, hidden_bias)
    input_reset, input_update, input_new = first.chunk(3, 1)
    hidden_reset, hidden_update, hidden_new = second.chunk(3, 1)
    reset, update = (input_reset + hidden_reset).sigmoid(), (input_update + hidden_update).sigmoid()
    new = (input_new + reset * hidden_new).tanh()
    return new + update * (hx - new), torch.cat([reset, update, new, hx, hidden_new], 1)


@decomposes(_aten._thnn_fused_gru_cell_backward.default)
def _gru_cell_backward(grad_hy: Any, workspace: Any, has_bias: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Gradients of input gates, hidden gates, old state and both biases."""
    reset, update, new, old, hidden_new = workspace.chunk(5, 1)
    grad_update = grad_hy * (old - new) * update * (1 - update)
    grad_new = grad_hy * (1 - update) * (1 - new * new)
    grad_reset = grad_new * hidden_new * reset * (1 - reset)
    grad_input = torch.cat([grad_reset, grad_update, grad_new], 1)
    grad_hidden = torch.cat([grad_reset, grad_update, grad_new * reset], 1)
    biases = (grad_input.sum(0), grad_hidden.sum(0)) if has_bias else (None, None)
    return grad_input, grad_hidden, grad_hy * update, *biases
