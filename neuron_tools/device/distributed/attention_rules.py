"""How DTensor may split the device's attention operators: by batch and by head, as it splits CUDA's."""

from __future__ import annotations

from typing import Any

OUTPUTS, GRADIENTS = 9, 4
FORWARD_TENSORS, BACKWARD_TENSORS = 3, 6
"""Query, key, value; gradient of the output, query, key, value, output, logsumexp. Others are replicated."""
BATCH, HEAD = 0, 1


def register() -> None:
    """Tell DTensor of both operators; called once its package is imported."""
    import torch
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo

    aten = torch.ops.aten
    rules = DTensor._op_dispatcher.sharding_propagator
    # What these arguments are, beside the tensors' layouts, decides what may be split: from dropout_p on.
    rules.register_op_strategy(
        aten._scaled_dot_product_fused_attention_overrideable.default, _forward, RuntimeSchemaInfo(4)
    )
    rules.register_op_strategy(
        aten._scaled_dot_product_fused_attention_overrideable_backward.default,
        _backward,
        RuntimeSchemaInfo(5),
    )


def _forward(schema: Any) -> Any:
    """(query, key, value, bias?, ...) -> (output, logsumexp, four sizes, seed, offset, debug mask)."""
    from torch.distributed.tensor import Replicate

    tensors = _tensors(schema)

    def layout(placement: Any) -> list[Any]:
        outputs = [placement, placement, None, None, None, None, Replicate(), Replicate(), None]
        return outputs + _with_replicated(placement, FORWARD_TENSORS, tensors)

    return _expanded(schema, layout, OUTPUTS)


def _backward(schema: Any) -> Any:
    """(grad_out, query, key, value, bias?, ..., out, logsumexp, ...) -> four gradients."""
    from torch.distributed.tensor._op_schema import OpStrategy

    has_bias = isinstance(schema.args_schema[4], OpStrategy)
    tensors = _tensors(schema)

    def layout(placement: Any) -> list[Any]:
        from torch.distributed.tensor import Replicate

        inputs = _with_replicated(placement, BACKWARD_TENSORS + has_bias, tensors)
        if has_bias:
            inputs[FORWARD_TENSORS + 1] = Replicate()
        return [placement, placement, placement, None, *inputs]

    return _expanded(schema, layout, GRADIENTS)


def _tensors(schema: Any) -> int:
    from torch.distributed.tensor._op_schema import OpStrategy

    return sum(isinstance(each, OpStrategy) for each in schema.args_schema)


def _with_replicated(placement: Any, count: int, tensors: int) -> list[Any]:
    from torch.distributed.tensor import Replicate

    return [placement] * count + [Replicate()] * (tensors - count)


def _expanded(schema: Any, layout: Any, outputs: int) -> Any:
    """The layouts for each dimension of the mesh, in all combinations."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor._ops.utils import expand_to_full_mesh_op_strategy

    layouts = [layout(placement) for placement in (Replicate(), Shard(HEAD), Shard(BATCH))]
    mesh = schema.get_mesh_from_args(validate=False)
    return expand_to_full_mesh_op_strategy(mesh, schema, layouts, input_index=outputs)
