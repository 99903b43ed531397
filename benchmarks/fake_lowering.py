"""Lowers a PyTorch module whose weights never exist: fake tensors, torch.export, StableHLO records."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from neuron_tools.compiler.hlo import Module
from neuron_tools.frontends.torch_compile.graph_lowering import lower_graph
from neuron_tools.frontends.torch_lowering.layout import StoredTensor


def lower_fake(
    make: Callable[[], nn.Module], arguments: Callable[[], tuple[Any, ...]], name: str,
    dtype: torch.dtype = torch.bfloat16,
) -> Module:  # fmt: skip
    """The HLO module of a forward run; nothing is allocated and nothing computed.

    Args:
        make: Makes the module; runs under a fake mode with `dtype` as the default type.
        arguments: Makes its arguments, likewise.
        name: The HLO module's name.
        dtype: Type of parameters and arguments.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True):
            warnings.simplefilter("ignore")
            program = torch.export.export(make().eval().requires_grad_(False), arguments(), strict=False)
            program = program.run_decompositions({})
    finally:
        torch.set_default_dtype(before)
    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs}
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    values = [node.meta["val"] for node in nodes]
    return lower_graph(
        program.graph,
        [StoredTensor(value.dtype, tuple(value.shape), tuple(value.stride())) for value in values],
        name,
        parameter_kinds=["weight" if targets.get(node.name) else "input" for node in nodes],
        parameter_names=[targets.get(node.name) or node.name for node in nodes],
    )
