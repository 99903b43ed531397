"""Turns a module for many devices into what one of them runs, with its collectives: Shardy's own passes."""

from __future__ import annotations

import re
from typing import Any

from neuron_tools.errors import NeuronToolsError

_PIPELINE = (
    "builtin.module(sdy-propagation-pipeline,"
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true}),"
    "func.func(sdy-reshard-to-collectives),"
    "sdy-convert-global-to-local)"
)
_BODY = "sdy.manual_computation"  # of `shard_map`
_PARTITIONS = re.compile(r"^(\d+)")


class PartitioningError(NeuronToolsError):
    """A sharded computation cannot be split into what one device runs."""


def partition_count(module: Any) -> int:
    """Devices that a JAX module is sharded over; 1 for a plain one."""
    attributes = module.operation.attributes
    if "mhlo.num_partitions" not in attributes:
        return 1
    match = _PARTITIONS.match(str(attributes["mhlo.num_partitions"]))
    return int(match[1]) if match else 1


def partition(module: Any) -> None:
    """Replace the global shapes of a module by those of one device, and insert the collectives that follow.

    Args:
        module: An `ir.Module` of JAX's binding; changed in place. Its context must be the current one.

    Raises:
        PartitioningError: Shardy refuses it.
    """
    from jaxlib.mlir import passmanager

    _place_bodies(module.operation)
    try:
        passmanager.PassManager.parse(_PIPELINE).run(module.operation)
    except Exception as error:  # MLIRError, or ValueError where a pass of that name is missing
        reason = " ".join(str(error).split())[:200]
        raise PartitioningError(
            f"The sharded computation cannot be split for one device ({reason})."
        ) from error
    _place_reshards(module.operation)


def _place_bodies(operation: Any, caller: Any = None) -> None:
    """Tell the operations of each `shard_map` where it stands: JAX traces its body as a separate program."""
    from jaxlib.mlir import ir

    for region in operation.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                if caller is not None:
                    inner.location = ir.Location.callsite(inner.location, [caller])
                _place_bodies(inner, inner.location if inner.name == _BODY else caller)


def _place_reshards(operation: Any) -> None:
    """Tell what moves an argument where it is used: Shardy gives it the argument's location, a mere name."""
    for region in operation.regions:
        for block in region.blocks:
            names = {str(argument.location) for argument in block.arguments}
            for view in reversed(list(block.operations)):
                inner = view.operation
                _place_reshards(inner)
                uses = list(inner.results[0].uses) if len(inner.results) else []
                if uses and str(inner.location) in names:
                    inner.location = uses[0].owner.location
