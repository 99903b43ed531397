"""LoRA adapters of a batch as dense products: each token's own adapter, and nothing for a token without.

vLLM's form in PyTorch's operators gathers an adapter's weights for every token, and takes the last adapter
for a token without one. Here all tokens meet each adapter once, and what is not theirs is multiplied by 0.
"""

from __future__ import annotations

import torch
from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

from neuron_tools.frontends.vllm_platform.tracing import traced


class NeuronPunicaWrapper(PunicaWrapperCPU):
    """vLLM's layers call this for their adapters' parts."""

    def __init__(
        self, max_num_batched_tokens: int, max_batches: int, device: torch.device | str, **options: object
    ) -> None:
        super().__init__(max_num_batched_tokens, max_batches, device, **options)
        # Tokens that fill up a compiled step look up an embedding, too: by what vLLM leaves uninitialised.
        self._embeddings_indices.zero_()

    @traced
    def _apply_shrink(self, y: torch.Tensor, x: torch.Tensor, w_t_all: torch.Tensor, scale: float) -> None:
        _shrink(y.view(-1, y.shape[-1]), x, w_t_all, self._token_lora_indices, scale)

    @traced
    def _apply_expand(
        self, y: torch.Tensor, x: torch.Tensor, w_t_all: torch.Tensor, y_offset: int, y_slice_size: int,
        add_inputs: bool = True,
    ) -> None:  # fmt: skip
        part = y[:, y_offset : y_offset + y_slice_size]
        _expand(part, x, w_t_all, self._token_lora_indices, add_inputs)

    @traced
    def add_lora_embedding(
        self,
        y: torch.Tensor,
        x: torch.Tensor,
        lora_b_stacked: torch.Tensor,
        add_inputs: bool = True,
        **options: object,
    ) -> None:
        """Add each token's adapter: `y` += `x` @ adapter.

        Args:
            y: What is added to, (tokens, size).
            x: (tokens, rank).
            lora_b_stacked: (adapters, 1, size, rank).
            add_inputs: Whether `y` is added to, not replaced.
            options: Of other platforms.
        """
        _expand(y, x, lora_b_stacked, self._token_lora_indices, add_inputs)

    def add_lora_logits(
        self, y: torch.Tensor, x: torch.Tensor, lora_a_stacked: torch.Tensor, lora_b_stacked: torch.Tensor,
        scale: float, *, buffer: torch.Tensor | None = None, **options: object,
    ) -> None:  # fmt: skip
        """Add each sample's adapter to its logits: `y` += `x` @ both factors.

        Args:
            y: What is added to, (samples, vocabulary).
            x: (samples, size).
            lora_a_stacked: (adapters, 1, rank, size).
            lora_b_stacked: (adapters, 1, vocabulary, rank).
            scale: What the adapter's part is multiplied by.
            buffer: Memory that vLLM offers, not used.
            options: Of other platforms.
        """
        inner = torch.zeros(x.shape[0], lora_b_stacked.shape[-1], dtype=torch.float32, device=x.device)
        _shrink(inner, x, lora_a_stacked, self._sampler_indices, scale)
        _expand(y, inner, lora_b_stacked, self._sampler_indices, True)


def _shrink(
    y: torch.Tensor, x: torch.Tensor, weights: torch.Tensor, adapters: torch.Tensor, scale: float
) -> None:
    """Write `y` (tokens, rank) from `x` (tokens, size) and `weights` (adapters, 1, rank, size)."""
    factors = _factors(weights, y.dtype)
    products = torch.matmul(x.to(y.dtype), factors)
    y[:, : factors.shape[-1]] = (products * _own(adapters, x.shape[0], factors)).sum(0) * scale


def _expand(
    y: torch.Tensor, x: torch.Tensor, weights: torch.Tensor, adapters: torch.Tensor, add: bool
) -> None:
    """Write `y` (tokens, size) or add to it, from `x` (tokens, rank), `weights` (adapters, 1, size, rank)."""
    factors = _factors(weights, y.dtype)
    own = x.to(y.dtype) * _own(adapters, x.shape[0], factors)
    products = torch.matmul(own, factors).sum(0)
    width = min(products.shape[1], y.shape[1])  # a vocabulary may be padded on one side
    y[:, :width] = y[:, :width] + products[:, :width] if add else products[:, :width]


def _factors(weights: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """(adapters, in, out)."""
    return weights.flatten(0, 1).transpose(1, 2).to(dtype)


def _own(adapters: torch.Tensor, tokens: int, factors: torch.Tensor) -> torch.Tensor:
    """1 where the adapter is the token's own, else 0: (adapters, tokens, 1)."""
    numbers = torch.arange(factors.shape[0], device=adapters.device)
    return (adapters[:tokens] == numbers[:, None])[:, :, None].to(factors.dtype)
