"""What lowered operators compute, by XLA's CPU back end, for comparison with PyTorch's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.fake import fake_tensor
from neuron_tools.frontends.torch_lowering.lowering import lower_to_text
from neuron_tools.frontends.torch_lowering.pairs import COMPLEX
from tests.unit.frontends import xla


def lowered(target: Callable[..., Any], *args: Any, **kwargs: Any) -> list[torch.Tensor]:
    """The tensors that an operator's StableHLO makes of these arguments, results before written arguments.

    Args:
        target: Operator overload.
        args: Its arguments; tensors with values.
        kwargs: Likewise.
    """
    leaves, structure = pytree.tree_flatten((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    is_complex: list[bool] = []

    def build(builder: GraphBuilder) -> list[fx.Node]:
        nodes = [
            builder.parameter(fake_tensor(leaf.shape, None, leaf.dtype))
            if isinstance(leaf, torch.Tensor)
            else leaf
            for leaf in leaves
        ]
        call_args, call_kwargs = pytree.tree_unflatten(nodes, structure)
        results = pytree.tree_leaves(builder.call(target, call_args, call_kwargs, row=0))
        results = [node for node in [*results, *builder.written] if isinstance(node, fx.Node)]
        is_complex[:] = [bool(node.meta.get(COMPLEX)) for node in results]
        return results

    portable = lower_to_text(build)
    assert portable.missing == ()
    arrays = [torch.view_as_real(t).numpy() if t.is_complex() else t.numpy() for t in tensors]
    made = xla.run(portable.text, [array.copy() for array in arrays])
    results = [torch.from_numpy(made[position].copy()) for position in portable.results]
    return [torch.view_as_complex(one) if pairs else one for one, pairs in zip(results, is_complex)]
