"""Mixtures of experts as dense products: each expert of this core meets every token.

How many tokens an expert gets is known only when a step runs, and a compiled step has fixed shapes. Tokens
that did not choose an expert have weight 0 there. Where cores share the experts, each core adds what
its own make, and vLLM adds the cores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import gelu, silu
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.model_executor.layers.fused_moe.runner import moe_runner
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import UnquantizedFusedMoEMethod

from neuron_tools.frontends.vllm_platform.tracing import traced

_ACTIVATIONS: dict[MoEActivation, Callable[[torch.Tensor], torch.Tensor]] = {
    MoEActivation.SILU: silu,
    MoEActivation.GELU: gelu,
}


@UnquantizedFusedMoEMethod.register_oot
class NeuronExperts(UnquantizedFusedMoEMethod):
    """The experts of one layer whose weights are not quantised."""

    is_monolithic = False  # vLLM chooses the experts

    def __init__(self, moe: Any) -> None:
        super().__init__(moe)
        if moe.activation not in _ACTIVATIONS or moe.has_bias:
            raise NotImplementedError(
                f"vLLM's platform neuron has no experts with biases or with {moe.activation.value}: "
                "serve another model, or leave the device out by TORCH_DEVICE_BACKEND_AUTOLOAD=0."
            )

    @traced
    def forward_oot(
        self, layer: Any, x: torch.Tensor, topk_weights: torch.Tensor, topk_ids: torch.Tensor, *shared: Any,
        **options: Any,
    ) -> torch.Tensor:  # fmt: skip
        """Add what the chosen experts make of each token.

        Args:
            layer: With `w13_weight` (experts, 2 * inner, size) and `w2_weight` (experts, size, inner).
            x: (tokens, size).
            topk_weights: Of the chosen experts, (tokens, chosen).
            topk_ids: Their numbers among all of the model, (tokens, chosen).
            shared: Experts that all tokens meet, which vLLM calls.
            options: Likewise.

        Returns:
            (tokens, size).
        """
        gate, up = torch.matmul(x, layer.w13_weight.transpose(1, 2)).chunk(2, dim=-1)
        made = torch.matmul(_ACTIVATIONS[layer.activation](gate) * up, layer.w2_weight.transpose(1, 2))
        own = topk_ids.long() if layer.expert_map is None else layer.expert_map[topk_ids.long()]
        numbers = torch.arange(layer.w13_weight.shape[0], device=x.device)
        weights = ((own[:, :, None] == numbers) * topk_weights[:, :, None]).sum(1)
        return (made * weights.t()[:, :, None].to(made.dtype)).sum(0)


def forward_of(runner: Any) -> Callable[..., Any]:
    """What a layer's runner calls: the function itself, not an operator that hides it from compilers."""
    name = "_moe_forward" if runner._shared_experts is None else "_moe_forward_shared"
    function: Callable[..., Any] = getattr(moe_runner, name)
    return function


@traced
def choose_by_softmax(
    topk_weights: torch.Tensor, topk_ids: torch.Tensor, _: torch.Tensor, gating_output: torch.Tensor,
    renormalize: bool = False, e_score_correction_bias: torch.Tensor | None = None,
    is_padding: torch.Tensor | None = None,
) -> None:  # fmt: skip
    """Fill `topk_weights` and `topk_ids` (tokens, chosen) from `gating_output` (tokens, experts)."""
    scores = gating_output.float().softmax(-1)
    _choose(topk_weights, topk_ids, scores, renormalize, e_score_correction_bias)


@traced
def choose_by_sigmoid(
    topk_weights: torch.Tensor, topk_ids: torch.Tensor, _: torch.Tensor, gating_output: torch.Tensor,
    renormalize: bool = False, e_score_correction_bias: torch.Tensor | None = None,
    routed_scaling_factor: float = 1.0, is_padding: torch.Tensor | None = None,
) -> None:  # fmt: skip
    """The same with each expert's score by itself."""
    scores = gating_output.float().sigmoid()
    _choose(topk_weights, topk_ids, scores, renormalize, e_score_correction_bias)
    topk_weights.mul_(routed_scaling_factor)


def _choose(
    weights: torch.Tensor,
    ids: torch.Tensor,
    scores: torch.Tensor,
    renormalize: bool,
    bias: torch.Tensor | None,
) -> None:
    chosen = (scores if bias is None else scores + bias).topk(ids.shape[1]).indices
    found = scores.gather(1, chosen)
    weights.copy_(found / found.sum(1, keepdim=True) if renormalize else found)
    ids.copy_(chosen)
