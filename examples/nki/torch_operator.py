"""A kernel as a PyTorch operator: sine forward, cosine backward, eager and compiled.

Run it on its own, or as `neuron-profile capture -- python examples/nki/torch_operator.py`.
"""

from __future__ import annotations

import torch

from neuron_tools import compat

compat.install()

import nki
import nki.isa as nisa
import nki.language as nl
from torch_neuronx import nki_op

ROWS = 128


@nki.jit
def sine_kernel(x, scale, shift):
    """scale * sin(x + shift), one tile of rows at a time."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    columns = x.shape[1]
    for first in nl.affine_range(x.shape[0] // ROWS):
        rows = nl.ds(first * ROWS, ROWS)
        tile = nl.ndarray((ROWS, columns), dtype=x.dtype, buffer=nl.sbuf)
        factor = nl.ndarray((ROWS, columns), dtype=x.dtype, buffer=nl.sbuf)
        offset = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[rows, :])
        nisa.dma_copy(dst=factor, src=scale[rows, :])
        nisa.memset(dst=offset, value=shift)
        nisa.activation(dst=tile, data=tile, op=nl.sin, bias=offset)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=factor, op=nl.multiply)
        nisa.dma_copy(dst=result[rows, :], src=tile)
    return result


@nki_op("neuron_examples::sine", mutates_args={})
def sine(x: torch.Tensor) -> torch.Tensor:
    """sin(x), for x of (n * 128, columns) between -pi and pi / 2."""
    return sine_kernel(x, torch.ones_like(x), 0.0)


@nki_op("neuron_examples::sine_backward", mutates_args={})
def sine_backward(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """gradient * cos(x), as sin(x + pi / 2)."""
    return sine_kernel(x, gradient, torch.pi / 2)


def _keep_input(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, gradient):
    (x,) = ctx.saved_tensors
    return sine_backward(gradient.contiguous(), x)


sine.register_autograd(_backward, setup_context=_keep_input)


def loss_of(x: torch.Tensor) -> torch.Tensor:
    """A scalar that depends on sin(x), with ordinary operators around the kernel."""
    return (sine(x * 0.5) * 2 + 1).pow(2).sum()


def main() -> None:
    """Values and gradients against PyTorch's own, eager and compiled."""
    torch.manual_seed(0)
    values = (torch.rand(2 * ROWS, 512) - 0.5) * 4
    expected = values.clone().requires_grad_()
    (torch.sin(expected * 0.5) * 2 + 1).pow(2).sum().backward()
    for name, function in (("eager", loss_of), ("compiled", torch.compile(loss_of, fullgraph=True))):
        x = values.to("neuron").requires_grad_()
        loss = function(x)
        loss.backward()
        error = (x.grad.cpu() - expected.grad).abs().max().item()
        print(f"{name:10} loss {loss.item():12.3f}   largest error of the gradient {error:.1e}")
        assert error < 1e-4


if __name__ == "__main__":
    main()
