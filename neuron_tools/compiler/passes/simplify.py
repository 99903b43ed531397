"""Removes data movement that moves nothing and gives every movement its plainest form.

After this pass: no identity reshape, convert, transpose, broadcast or slice; chains of reshapes and of
transposes are one; dynamic-shaped forms with static results are static; a broadcast of a value whose
reshape only added unit dimensions broadcasts the value itself; each barrier has one operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuron_tools.compiler.graph import OrderedPass, Rewriter
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import BARRIER

_STATIC_FORM = {
    "dynamic_reshape": "reshape",
    "dynamic_broadcast_in_dim": "broadcast_in_dim",
    "dynamic_iota": "iota",
    "dynamic_pad": "pad",
    "real_dynamic_slice": "dynamic_slice",
}
_TRANSPARENT = frozenset({"custom_sharding", "sharding_constraint"})
_TRANSPARENT_TARGETS = frozenset(
    {
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "LayoutConstraint",
    }
)
"""Custom calls that only tell XLA where values belong."""


def simplify(module: Module) -> Module:
    """See the module's text. The order of operations and all other operations are kept."""
    return _Simplifier(module).run()


def remove_barriers(module: Module) -> Module:
    """Let values behind barriers be those before them, when nothing will be merged any more.

    A program with barriers runs in its own order: what it computes again, to keep no memory for it, is ready
    long before it is needed.
    """
    rewriter, has_barriers = Rewriter(module), False
    for original in module.operations:
        operation = rewriter.renamed(original)
        if operation.opcode == BARRIER:
            has_barriers = True
            for result, operand in zip(operation.results, operation.operands):
                rewriter.alias(result, operand)
        else:
            rewriter.operations.append(operation)
    return replace(rewriter.finish(), in_order=module.in_order or has_barriers)


class _Simplifier(OrderedPass):
    def _rewritten(self, operation: Operation) -> Operation | None:
        """The plainer operation, or None when its results now stand for other values."""
        if _is_transparent(operation):
            for result, operand in zip(operation.results, operation.operands):
                self._rewriter.alias(result, operand)
            return None
        if operation.opcode == BARRIER:
            for operand, result in zip(operation.operands, operation.results):
                self._keep(Operation(BARRIER, (operand,), (result,), {}, operation.framework))
            return None
        operation = self._static(operation)
        rule = getattr(self, f"_{operation.opcode}", None)
        return rule(operation) if rule is not None and len(operation.results) == 1 else operation

    def _static(self, operation: Operation) -> Operation:
        opcode = _STATIC_FORM.get(operation.opcode)
        if opcode is None or opcode == "dynamic_slice":
            return operation
        operands = () if opcode == "iota" else operation.operands[:1]
        if opcode == "pad":
            return operation
        return Operation(opcode, operands, operation.results, operation.attributes, operation.framework)

    def _forward(self, operation: Operation) -> Operation | None:
        """Let the result stand for the operand; None: nothing is left to do."""
        self._rewriter.alias(operation.results[0], operation.operands[0])
        return None

    def _same_type(self, operation: Operation) -> bool:
        types = self._rewriter
        return types.type_of(operation.operands[0]) == types.type_of(operation.results[0])

    def _convert(self, operation: Operation) -> Operation | None:
        return self._forward(operation) if self._same_type(operation) else operation

    def _slice(self, operation: Operation) -> Operation | None:
        return self._forward(operation) if self._same_type(operation) else operation

    def _reshape(self, operation: Operation) -> Operation | None:
        inner = self._made_by.get(operation.operands[0])
        if inner is not None and inner.opcode == "reshape":
            operation = _with_operand(operation, inner.operands[0])
        return self._forward(operation) if self._same_type(operation) else operation

    def _transpose(self, operation: Operation) -> Operation | None:
        permutation = tuple(operation.attributes.get("permutation", ()))
        inner = self._made_by.get(operation.operands[0])
        if inner is not None and inner.opcode == "transpose":
            first = tuple(inner.attributes["permutation"])
            permutation = tuple(first[axis] for axis in permutation)
            operation = _with_operand(operation, inner.operands[0], permutation=permutation)
        shape = self._rewriter.type_of(operation.operands[0]).shape
        if permutation == tuple(range(len(permutation))):
            return self._forward(operation)
        if _moves_nothing(shape, permutation):
            reshaped = Operation("reshape", operation.operands, operation.results, {}, operation.framework)
            return self._reshape(reshaped)
        return operation

    def _broadcast_in_dim(self, operation: Operation) -> Operation | None:
        dims = tuple(operation.attributes.get("broadcast_dimensions", ()))
        source = operation.operands[0]
        types = self._rewriter
        if types.type_of(source).element_count == types.type_of(operation.results[0]).element_count:
            reshaped = Operation("reshape", (source,), operation.results, {}, operation.framework)
            return self._reshape(reshaped)
        inner = self._made_by.get(source)
        if inner is not None and inner.opcode == "reshape":
            narrow = types.type_of(inner.operands[0]).shape
            placed = _dims_without_units(types.type_of(source).shape, narrow, dims)
            if placed is not None:
                return self._broadcast_in_dim(
                    _with_operand(operation, inner.operands[0], broadcast_dimensions=placed)
                )
        if inner is not None and inner.opcode == "broadcast_in_dim":
            first = tuple(inner.attributes["broadcast_dimensions"])
            composed = tuple(dims[axis] for axis in first)
            return self._broadcast_in_dim(
                _with_operand(operation, inner.operands[0], broadcast_dimensions=composed)
            )
        return operation


def _is_transparent(operation: Operation) -> bool:
    if len(operation.operands) != len(operation.results):
        return False
    target = operation.attributes.get("call_target_name")
    return operation.opcode in _TRANSPARENT or (
        operation.opcode == "custom_call" and target in _TRANSPARENT_TARGETS
    )


def _with_operand(operation: Operation, operand: int, **attributes: object) -> Operation:
    return Operation(
        operation.opcode,
        (operand,),
        operation.results,
        {**operation.attributes, **attributes},
        operation.framework,
    )


def _moves_nothing(shape: Sequence[int], permutation: Sequence[int]) -> bool:
    """Whether a transpose only moves unit dimensions, i.e. keeps the order in memory."""
    kept = [axis for axis in permutation if shape[axis] != 1]
    return kept == sorted(kept)


def _dims_without_units(
    wide: Sequence[int], narrow: Sequence[int], dims: Sequence[int]
) -> tuple[int, ...] | None:
    """Where the dimensions of `narrow` go, if `wide` is `narrow` with unit dimensions put in or taken out.

    Example:
        >>> _dims_without_units((4, 8, 1), (4, 8), (0, 1, 2))
        (0, 1)
    """
    if [extent for extent in wide if extent != 1] != [extent for extent in narrow if extent != 1]:
        return None
    placed: list[int] = []
    axis = 0
    for extent in narrow:
        if extent == 1:
            return None if 1 in narrow and len(narrow) > 1 else (dims[0],) if len(dims) else None
        while wide[axis] != extent:
            axis += 1
        placed.append(dims[axis])
        axis += 1
    return tuple(placed)
