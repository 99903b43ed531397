"""`optimization_barrier`: what is made of values behind one is not merged with the same made before it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.compiler.opcodes import BARRIER
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes
from neuron_tools.frontends.torch_xla.execution import current_graph
from neuron_tools.frontends.torch_xla.graph import ValueNumber
from neuron_tools.frontends.torch_xla.origin import current_origin
from neuron_tools.frontends.torch_xla.tensor import XlaTensor

_NAME = f"neuron_xla::{BARRIER}"


def put_barrier(tensors: Sequence[torch.Tensor]) -> None:
    """Let tensors stand for their values behind a barrier; the values, and their memory, are the same.

    Args:
        tensors: Those that are not on the device `xla` stay as they are.
    """
    behind = [tensor for tensor in tensors if isinstance(tensor, XlaTensor)]
    if not behind:
        return
    graph = current_graph()
    numbers = [ValueNumber(graph.number_of(tensor.lazy, tensor)) for tensor in behind]
    leaves, structure = pytree.tree_flatten(((numbers,), {}))
    results = [tensor.lazy.renamed() for tensor in behind]
    graph.add(_operator(), leaves, structure, results, current_origin())
    for tensor, result in zip(behind, results):
        tensor.lazy = result


@cache
def _operator() -> Any:
    """The operator, defined on first use."""
    torch.library.define(_NAME, "(Tensor[] inputs) -> Tensor[]")
    torch.library.register_fake(_NAME, lambda inputs: [torch.empty_like(each) for each in inputs])
    torch.library.impl(_NAME, "default", lambda inputs: [each.clone() for each in inputs])
    becomes(_NAME, _lowered)
    return torch.ops.neuron_xla.optimization_barrier.default


def _lowered(node: fx.Node) -> Intrinsic:
    return Intrinsic(BARRIER)
