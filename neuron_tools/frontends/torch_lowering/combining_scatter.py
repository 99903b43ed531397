"""A scatter whose body is another function than a sum: ATen has the operator, torch-mlir only the sum.

The graph holds `neuron_lowering::scatter_combine`; torch-mlir sees a `scatter_add` in its place, whose body
is rewritten in the StableHLO that comes out.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import fx
from torch_mlir import ir

COMBINER = "combiner"
"""Key in a node's `meta`: the StableHLO operation that the scatter's body becomes."""

_library = torch.library.Library("neuron_lowering", "FRAGMENT")
_library.define("scatter_combine(Tensor self, int dim, Tensor index, Tensor source, str combiner) -> Tensor")
_NODE = re.compile(r'"n:(\d+)"')


@torch.library.register_fake("neuron_lowering::scatter_combine", lib=_library)  # type: ignore[untyped-decorator]  # torch is not followed
def _shape(tensor: Any, dim: int, index: Any, source: Any, combiner: str) -> Any:
    return torch.empty_like(tensor)


def scatter_combine(tensor: Any, dim: int, index: Any, source: Any, combiner: str) -> Any:
    """`tensor` with `source` combined into the places that `index` names along `dim`.

    Args:
        tensor: What is combined with; its shape is the result's.
        dim: The dimension that `index` counts along.
        index: int64, the shape of `source`.
        source: What is combined, element by element.
        combiner: "maximum", "minimum" or "multiply".
    """
    return torch.ops.neuron_lowering.scatter_combine(tensor, dim, index, source, combiner)


def as_sum(node: fx.Node) -> None:
    """Turn a call of `scatter_combine` into the `scatter_add` that torch-mlir knows; others stay."""
    if node.target is torch.ops.neuron_lowering.scatter_combine.default:
        node.target = torch.ops.aten.scatter_add.default
        node.meta[COMBINER] = node.args[-1]
        node.args = node.args[:-1]


def restore_combiners(module: ir.Module, combiners: dict[int, str]) -> None:
    """Give each scatter of a StableHLO module its own body.

    Args:
        module: What torch-mlir made.
        combiners: StableHLO operation by number of the graph node (`n:<number>` in its location).
    """
    if not combiners:
        return
    for scatter in _scatters(module.operation):
        found = _NODE.search(str(scatter.location))
        combiner = combiners.get(int(found.group(1))) if found is not None else None
        if combiner is not None:
            _replace_sum(scatter.regions[0].blocks[0], combiner)


def _scatters(operation: Any) -> list[Any]:
    found = []
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += _scatters(inner.operation)
                if inner.operation.name == "stablehlo.scatter":
                    found.append(inner.operation)
    return found


def _replace_sum(block: Any, combiner: str) -> None:
    total = next(inner.operation for inner in block.operations if inner.operation.name == "stablehlo.add")
    with total.location, ir.InsertionPoint(total):
        new = ir.Operation.create(
            f"stablehlo.{combiner}", results=[total.result.type], operands=list(total.operands)
        )
    total.result.replace_all_uses_with(new.result)
    total.erase()
