"""Context parallel attention on neuron tensors: PyTorch's ring with the device's attention operators.

`torch.distributed.tensor.experimental.context_parallel` splits queries, keys and values along the sequence
and passes keys and values around. It knows CUDA's operators; here it learns the device's.
"""

from __future__ import annotations

from typing import Any

SEQUENCE = 2


def register() -> None:
    """Add the device's operators to those that run as a ring; called once PyTorch's module is imported."""
    import torch
    from torch.distributed.tensor.experimental._context_parallel import _attention

    aten = torch.ops.aten
    _attention.custom_ops.update(
        {
            aten._scaled_dot_product_fused_attention_overrideable.default: _forward,
            aten._scaled_dot_product_fused_attention_overrideable_backward.default: _backward,
        }
    )


def _forward(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.experimental._context_parallel import _attention

    given = _named(operator, args, kwargs)
    if given.pop("return_debug_mask"):
        raise NotImplementedError("Context parallel attention has no debug mask.")
    _refuse_bias(given.pop("attn_bias"))
    query = given["query"]
    out, logsumexp, *rest = _attention._templated_ring_attention(
        query.device_mesh.get_group(), SEQUENCE, operator, **_local(given)
    )
    spread = [DTensor.from_local(each, query.device_mesh, query.placements) for each in (out, logsumexp)]
    return (*spread, *rest)


def _backward(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.experimental._context_parallel import _attention

    given = _named(operator, args, kwargs)
    _refuse_bias(given["attn_bias"])
    query = given["query"]
    *gradients, bias = _attention._templated_ring_attention_backward(
        query.device_mesh.get_group(), SEQUENCE, operator, grad_out_name="grad_out", **_local(given)
    )
    spread = [DTensor.from_local(each, query.device_mesh, query.placements) for each in gradients]
    return (*spread, bias)


def _named(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Every argument by its name, with the defaults of those left out."""
    arguments = operator._schema.arguments
    given = {each.name: each.default_value for each in arguments if each.has_default_value()}
    given.update(zip((each.name for each in arguments), args, strict=False))
    return given | kwargs


def _local(given: dict[str, Any]) -> dict[str, Any]:
    from torch.distributed.tensor import DTensor

    return {name: each.to_local() if isinstance(each, DTensor) else each for name, each in given.items()}


def _refuse_bias(bias: Any) -> None:
    if bias is not None and bias.numel():
        raise NotImplementedError(
            "Context parallel attention takes no mask: pass is_causal=True, or leave the mask out."
        )
