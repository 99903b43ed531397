"""Convolutions that say themselves what movements around them did.

A kernel whose taps are reversed beforehand (gradients of images) is read in the other order instead, an image
that zeros are put around is read with that padding, and a result that is transposed afterwards (gradients of
kernels, patches as rows) is made in that order, a bias and merged axes between them with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from neuron_tools.compiler.graph import OrderedPass, users
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import ELEMENTWISE
from neuron_tools.compiler.passes.dead_code import eliminate_dead_code


def absorb_into_convolutions(module: Module) -> Module:
    """See the module's text."""
    if not any(operation.opcode == "convolution" for operation in module.operations):
        return module
    return eliminate_dead_code(_Absorber(module).run())


def _edges(pad: Operation) -> list[tuple[int, int]]:
    """What a pad adds before and after each axis."""
    low, high = (pad.attributes.get(f"edge_padding_{end}", ()) for end in ("low", "high"))
    return list(zip(low, high))


class _Absorber(OrderedPass):
    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._users = users(module)
        self._results = set(module.results)

    def _rewritten(self, operation: Operation) -> Operation | None:
        if operation.opcode == "convolution":
            return self._with_image_as_it_lies(self._with_kernel_as_it_lies(operation))
        if operation.opcode == "transpose":
            return self._turned_before(operation) or operation
        return operation

    def _with_kernel_as_it_lies(self, operation: Operation) -> Operation:
        """The convolution of the kernel before its taps were reversed, in front of movements or not."""
        numbers = operation.attributes.get("dimension_numbers")
        if not isinstance(numbers, Mapping):
            return operation
        found = self._reversed_before(operation.operands[1])
        names = [] if found is None else [numbers["kernel"][axis] for axis in found[1]]
        if found is None or not all(name.isdigit() for name in names):
            return operation
        reversal = list(operation.attributes.get("window_reversal", ())) or [False] * (
            len(numbers["kernel"]) - 2
        )
        for name in names:
            reversal[int(name)] = not reversal[int(name)]
        return replace(
            operation,
            operands=(
                operation.operands[0],
                self._unreversed(operation.operands[1]),
                *operation.operands[2:],
            ),
            attributes={**operation.attributes, "window_reversal": tuple(reversal)},
        )

    def _reversed_before(self, value: int) -> tuple[Operation, tuple[int, ...]] | None:
        """The `reverse` in front of transposes and reshapes that keep its axes, and where these are now."""
        made = self._made_by.get(value)
        if made is None:
            return None
        if made.opcode == "reverse":
            return made, tuple(made.attributes.get("dimensions", ()))
        found = self._reversed_before(made.operands[0]) if made.opcode in ("transpose", "reshape") else None
        places = {} if found is None else self._places(made)
        if found is None or not all(axis in places for axis in found[1]):
            return None
        return found[0], tuple(places[axis] for axis in found[1])

    def _places(self, movement: Operation) -> dict[int, int]:
        """Where a transpose or a reshape puts those axes of its operand that it keeps."""
        if movement.opcode == "transpose":
            return {axis: place for place, axis in enumerate(movement.attributes["permutation"])}
        before, after = (
            self._rewriter.type_of(value).shape for value in (movement.operands[0], movement.results[0])
        )
        starts = {(math.prod(after[:place]), extent): place for place, extent in enumerate(after)}
        found = ((axis, (math.prod(before[:axis]), extent)) for axis, extent in enumerate(before))
        return {axis: starts[key] for axis, key in found if key in starts}

    def _unreversed(self, value: int) -> int:
        """Emit the movements between a value and its `reverse` anew, without it."""
        made = self._made_by[value]
        if made.opcode == "reverse":
            return made.operands[0]
        operand = self._unreversed(made.operands[0])
        return self._rewriter.add(
            made.opcode, (operand,), self._rewriter.type_of(value), made, **made.attributes
        )

    def _with_image_as_it_lies(self, operation: Operation) -> Operation:
        """The convolution of the image before zeros were put around it, or edges cut off."""
        numbers = operation.attributes.get("dimension_numbers")
        pad = self._made_by.get(operation.operands[0])
        if not isinstance(numbers, Mapping) or pad is None or pad.opcode != "pad":
            return operation
        sizes = dict(zip(numbers["input"], _edges(pad)))
        spreads = any(pad.attributes.get("interior_padding", ())) or any(
            extent != 1 for extent in operation.attributes.get("lhs_dilation", ())
        )
        pads_channels = any(any(edges) for name, edges in sizes.items() if not name.isdigit())
        if spreads or pads_channels or not self._is_zero(pad.operands[1]):
            return operation
        spatial = sorted((name for name in sizes if name.isdigit()), key=int)
        added = [size for name in spatial for size in sizes[name]]
        before = tuple(operation.attributes.get("padding", ())) or (0,) * len(added)
        padding = tuple(size + more for size, more in zip(before, added))
        return replace(
            operation, operands=(pad.operands[0], *operation.operands[1:]),
            attributes={**operation.attributes, "padding": padding},
        )  # fmt: skip

    def _is_zero(self, value: int) -> bool:
        made = self._made_by.get(value)
        while made is not None and made.opcode in ("convert", "reshape", "broadcast_in_dim"):
            made = self._made_by.get(made.operands[0])
        return made is not None and made.opcode == "constant" and made.attributes.get("value") == 0

    def _turned_before(self, transpose: Operation) -> Operation | None:
        """A transpose's result made of a convolution that writes in that order, through what follows it."""
        value, order = transpose.operands[0], tuple(transpose.attributes["permutation"])
        if not self._can_turn(value, order):
            return None
        self._turned(value, order)
        made = self._rewriter.operations.pop()
        return replace(made, results=transpose.results, framework=_joined(made, transpose))

    def _can_turn(self, value: int, order: Sequence[int]) -> bool:
        """Whether a value that nobody else reads is a convolution, or follows from one, axis by axis."""
        made = self._made_by.get(value)
        if made is None or len(self._users.get(value, ())) != 1 or value in self._results:
            return False
        if made.opcode == "convolution":
            return isinstance(made.attributes.get("dimension_numbers"), Mapping)
        if made.opcode == "reshape":
            groups = self._merged(made)
            return groups is not None and self._can_turn(made.operands[0], _taken_apart(order, groups))
        if made.opcode not in ELEMENTWISE or made.regions:
            return False
        full = [operand for operand in made.operands if not self._is_spread(operand, order)]
        return len(full) == 1 and self._can_turn(full[0], order)

    def _merged(self, reshape: Operation) -> tuple[tuple[int, ...], ...] | None:
        """Axes of a reshape's operand that each axis of its result stands for; None unless it only merges."""
        before, after = (
            self._rewriter.type_of(value).shape for value in (reshape.operands[0], reshape.results[0])
        )
        groups, axis = [], 0
        for extent in after:
            first, axis = axis, axis + 1
            while axis < len(before) and math.prod(before[first:axis]) < extent:
                axis += 1
            if math.prod(before[first:axis]) != extent:
                return None
            groups.append(tuple(range(first, axis)))
        return tuple(groups) if axis == len(before) else None

    def _is_spread(self, value: int, order: Sequence[int]) -> bool:
        """Whether a value is one number, or a smaller one spread over axes that keep their order."""
        made = self._made_by.get(value)
        if made is None or made.opcode not in ("constant", "broadcast_in_dim"):
            return False
        if made.opcode == "constant":
            return isinstance(made.attributes.get("value"), (int, float, bool))
        places = _placed(made, order)
        return places == sorted(places)

    def _turned(self, value: int, order: Sequence[int]) -> int:
        """Emit a value with its axes in another order, as `_can_turn` found."""
        made = self._made_by[value]
        type_ = self._rewriter.type_of(value)
        turned = replace(type_, shape=tuple(type_.shape[axis] for axis in order))
        operands, attributes = made.operands, dict(made.attributes)
        if made.opcode == "convolution":
            numbers = attributes["dimension_numbers"]
            output = tuple(numbers["output"][axis] for axis in order)
            attributes["dimension_numbers"] = {**numbers, "output": output}
        elif made.opcode == "reshape":
            groups = self._merged(made)
            assert groups is not None
            operands = (self._turned(operands[0], _taken_apart(order, groups)),)
        elif made.opcode == "broadcast_in_dim":
            attributes["broadcast_dimensions"] = tuple(_placed(made, order))
        elif made.opcode != "constant":
            operands = tuple(self._turned(operand, order) for operand in operands)
        return self._rewriter.add(made.opcode, operands, turned, made, **attributes)


def _taken_apart(order: Sequence[int], groups: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(axis for place in order for axis in groups[place])


def _placed(broadcast: Operation, order: Sequence[int]) -> list[int]:
    """Where the axes of a broadcast's operand lie when the result's axes have another order."""
    return [order.index(axis) for axis in broadcast.attributes.get("broadcast_dimensions", ())]


def _joined(first: Operation, second: Operation) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*first.framework, *second.framework)))
