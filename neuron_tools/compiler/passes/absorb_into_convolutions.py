"""Convolutions that say themselves what movements around them did.

A kernel whose taps are reversed beforehand (gradients of images) is read in the other order instead, an image
that zeros are put around is read with that padding, and a result that is transposed afterwards (gradients of
kernels) is made in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from neuron_tools.compiler.graph import OrderedPass, users
from neuron_tools.compiler.hlo import Module, Operation


def absorb_into_convolutions(module: Module) -> Module:
    """See the module's text. What nobody reads any more stays for dead code elimination."""
    return _Absorber(module).run()


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
            return self._as_convolution(operation) or operation
        return operation

    def _with_kernel_as_it_lies(self, operation: Operation) -> Operation:
        """The convolution of the kernel before its taps were reversed."""
        numbers = operation.attributes.get("dimension_numbers")
        reverse = self._made_by.get(operation.operands[1])
        if not isinstance(numbers, Mapping) or reverse is None or reverse.opcode != "reverse":
            return operation
        names = [numbers["kernel"][axis] for axis in reverse.attributes.get("dimensions", ())]
        if not all(name.isdigit() for name in names):
            return operation
        reversal = list(operation.attributes.get("window_reversal", ())) or [False] * (
            len(numbers["kernel"]) - 2
        )
        for name in names:
            reversal[int(name)] = not reversal[int(name)]
        return replace(
            operation,
            operands=(operation.operands[0], reverse.operands[0], *operation.operands[2:]),
            attributes={**operation.attributes, "window_reversal": tuple(reversal)},
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

    def _as_convolution(self, transpose: Operation) -> Operation | None:
        """The convolution in front of a transpose, with the transpose's result."""
        value = transpose.operands[0]
        made = self._made_by.get(value)
        if made is None or made.opcode != "convolution":
            return None
        numbers = made.attributes.get("dimension_numbers")
        read_once = len(self._users.get(value, ())) == 1 and value not in self._results
        if not isinstance(numbers, Mapping) or not read_once:
            return None
        output = tuple(numbers["output"][axis] for axis in transpose.attributes["permutation"])
        self._take_out(made)
        frameworks = tuple(dict.fromkeys((*made.framework, *transpose.framework)))
        return replace(
            made, results=transpose.results, framework=frameworks,
            attributes={**made.attributes, "dimension_numbers": {**numbers, "output": output}},
        )  # fmt: skip

    def _take_out(self, operation: Operation) -> None:
        """Remove an operation that is made anew further down: it stands near the end."""
        kept = self._rewriter.operations
        del kept[next(index for index in reversed(range(len(kept))) if kept[index] is operation)]
