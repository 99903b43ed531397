"""Puts what was cut out of a graph back into its StableHLO, for a partitioner, which must see all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import fx
from torch_mlir import ir

from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT, BARRIER
from neuron_tools.frontends.jax.batched_calls import PART_OF_CALL, WHOLE_CALL, BatchedCall
from neuron_tools.frontends.torch_lowering.blocks import declare, end_with, entry, insert, order, terminator
from neuron_tools.frontends.torch_lowering.indices import simplify_indices
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, activation, operator_name
from neuron_tools.frontends.torch_lowering.partition import Cut, Partition
from neuron_tools.frontends.torch_lowering.recurrence import recurrence_of
from neuron_tools.frozen import frozen

MARK = "Sharding"
"""XLA's name of the custom call that says how its operand lies over devices."""
FULL_TO_SHARD, SHARD_TO_FULL = "SPMDFullToShardShape", "SPMDShardToFullShape"
"""Its names of those between a tensor and the parts of it that each device computes with by itself."""
_SEEN = (MARK, FULL_TO_SHARD, SHARD_TO_FULL)
SHARDING = "mhlo.sharding"
"""The attribute that says how."""
WHOLE, MANUAL = "{replicated}", "{manual}"
_CHLO = {"erf": "chlo.erf", "erf_inv": "chlo.erf_inv", "lgamma": "chlo.lgamma", "digamma": "chlo.digamma"}
"""Functions that XLA has as operations; it takes the others apart."""
_BATCH_AXES = {ATTENTION_GRADIENT: 2}
"""Operations of ours that a partitioner may cut along this many first axes: batch and heads."""


@frozen
class Shardings:
    """How what a computation takes and gives lies over devices.

    Attributes:
        parameters: How many it takes; further ones of the module are results of what was cut out.
        taken: How those lie of which that is known, in XLA's text; the others are whole on each device.
        given: How those results lie of which that is known.
    """

    parameters: int
    taken: Mapping[int, str]
    given: Mapping[int, str]


def seen_by_partitioner(
    intrinsic_of: Callable[[fx.Node], Intrinsic | None], node: fx.Node
) -> Intrinsic | None:
    """What a call becomes that torch-mlir shall not see and a partitioner can; None for others."""
    recurrence = recurrence_of(node)
    if recurrence is not None:
        return recurrence
    known = activation(operator_name(node.target))
    if known is not None:
        return known if known.attributes["function"] in _CHLO else None
    intrinsic = intrinsic_of(node)
    if intrinsic is None:
        return None
    is_mark = intrinsic.attributes.get("call_target_name") in _SEEN
    return intrinsic if is_mark or intrinsic.opcode in (BARRIER, *_BATCH_AXES) else None


def rejoin(module: Any, partitioned: Partition, shardings: Shardings) -> str:
    """The text of the whole module, with its locations.

    Args:
        module: torch-mlir's, of `partitioned.graph`; it is changed.
        partitioned: How it was cut.
        shardings: How parameters and results of the whole computation lie over devices.
    """
    with module.context, ir.Location.unknown():
        function = entry(module)
        block = function.regions[0].blocks[0]
        for number, cut in enumerate(partitioned.cuts):
            _put_back(block, cut, number)
        order(block)
        simplify_indices(block)
        end_with(block, partitioned.results)
        for position in reversed(range(shardings.parameters, len(block.arguments))):
            block.erase_argument(position)
        _declare(function, block, shardings)
        return str(module.operation.get_asm(enable_debug_info=True))


def with_parts_of_calls(module: Module, partitioned: Partition) -> Module:
    """What one device runs, with our operations where a partitioner had calls in their place.

    Args:
        module: Of one device.
        partitioned: How the whole was cut.
    """
    operations = tuple(_part_of_cut(operation, partitioned.cuts) for operation in module.operations)
    return replace(module, operations=operations)


def _part_of_cut(operation: Operation, cuts: Sequence[Cut]) -> Operation:
    if operation.attributes.get("call_target_name") != PART_OF_CALL:
        return operation
    cut = cuts[BatchedCall.parse(operation.attributes["backend_config"]).number]
    rows = (cut.row,) if cut.row >= 0 else ()
    return replace(operation, opcode=cut.intrinsic.opcode, attributes=cut.attributes, framework=rows)


def _put_back(block: Any, cut: Cut, number: int) -> None:
    results = [block.arguments[position] for position in cut.results]
    name, attributes = _operation(cut, number)
    operands = [terminator(block).operands[position] for position in cut.operands]
    is_barrier = cut.intrinsic.opcode == BARRIER  # it gives all that it takes
    types = [value.type for value in (operands if is_barrier else results)]
    parsed = {key: ir.Attribute.parse(text) for key, text in attributes.items()}
    made = insert(block, name, operands, types, parsed, cut.row)
    given = [made.results[part] for part in cut.parts] if is_barrier else made.results
    for before, after in zip(results, given):
        before.replace_all_uses_with(after)


def _declare(function: Any, block: Any, shardings: Shardings) -> None:
    """Let the function say what it takes and gives now, and how that lies."""
    declare(function)
    taken, given = range(len(block.arguments)), range(len(terminator(block).operands))
    attributes = function.attributes
    arguments = [_described(shardings.taken.get(at, WHOLE)) for at in taken]
    attributes["arg_attrs"] = ir.ArrayAttr.get(arguments)
    attributes["res_attrs"] = ir.ArrayAttr.get([_described(shardings.given.get(at)) for at in given])


def _described(sharding: str | None) -> Any:
    return ir.Attribute.parse("{}" if sharding is None else f'{{{SHARDING} = "{sharding}"}}')


def _operation(cut: Cut, number: int) -> tuple[str, dict[str, str]]:
    """Its name and the text of its attributes."""
    attributes = cut.intrinsic.attributes
    if axes := _BATCH_AXES.get(cut.intrinsic.opcode):
        config = BatchedCall(number, axes).config
        named = {"call_target_name": f'"{WHOLE_CALL}"', "backend_config": f'"{config}"'}
        return "stablehlo.custom_call", named
    if cut.intrinsic.opcode == "activation":
        return _CHLO[attributes["function"]], {}
    if cut.intrinsic.opcode == BARRIER:
        return "stablehlo.optimization_barrier", {}
    named = {"call_target_name": f'"{attributes["call_target_name"]}"'}
    if SHARDING in attributes:
        named[SHARDING] = f'"{attributes[SHARDING]}"'
    return "stablehlo.custom_call", named
