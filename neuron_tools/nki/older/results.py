"""How the older dialect spells an instruction: its result is returned, and every call takes a mask.

Most instructions have the arguments of the present dialect otherwise, so their functions are made from the
present ones (`returned`, `in_place`). As in `isa.prologue`, each is code of its own, compiled when the module
is imported: kernels make many calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from neuron_tools.nki.dtypes import DType, as_dtype, promote
from neuron_tools.nki.isa.table import TABLE
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tensor import NkiTensor

Emit = Callable[[NkiTensor, Restriction], object]
"""Emits an instruction into (a part of) its result, with operands restricted alike."""


def result_type(dtype: Any, default: DType) -> DType:
    """The type that a call asks for, or the one that follows from its operands."""
    return as_dtype(dtype) if dtype is not None else default


def tile_result(
    shape: Sequence[int],
    dtype: DType,
    mask: Any,
    emit: Emit,
    region: MemoryRegion = MemoryRegion.sbuf,
) -> NkiTensor:
    """A held-back result of the shape of its operands, restricted by the mask."""
    left = Restriction(shape, mask)
    return result(tuple(shape), dtype, lambda target: left.run(target, lambda part: emit(part, left)), region)


def rows_result(data: NkiTensor, columns: int, dtype: DType, mask: Any, emit: Emit) -> NkiTensor:
    """A held-back result of some columns for each row (partition) of `data`; a mask restricts the rows."""
    left = Restriction(data.shape, mask)

    def into_rows(target: NkiTensor) -> None:
        rows = left.rectangle and left.rectangle[0]
        emit(target.within((rows, (0, columns))) if rows else target, left)

    return result((data.shape[0], columns), dtype, into_rows, left=left)


def tile_written(dst: NkiTensor, mask: Any, emit: Emit) -> None:
    """Emit at once into what the mask leaves of a tile that the call names."""
    left = Restriction(dst.shape, mask)
    left.run(dst, lambda part: emit(part, left))


def as_large(operand: NkiTensor, target: NkiTensor) -> NkiTensor:
    """The operand, repeated to the shape of the target where it is smaller."""
    return operand if operand.size == target.size else operand.broadcast_to(target.shape)


_NAMES: Mapping[str, Any] = {
    function.__name__: function
    for function in (as_large, promote, result_type, rows_result, tile_result, tile_written)
}
"""What generated code names."""


def returned(
    instruction: Callable[..., object],
    *like: str,
    columns: int | None = None,
    dtype: DType | None = None,
    **defaults: Any,
) -> Callable[..., NkiTensor]:
    """An instruction that returns what the present dialect writes into its argument `dst`.

    Args:
        instruction: The present function; its other arguments and their order stay.
        like: Operands that the result follows: the shape of the first, the type that all promote to.
        columns: The result has so many columns for each row of the operand instead.
        dtype: Type of the result where it does not follow from operands.
        defaults: Default values that differ in the older dialect.

    Returns:
        The function, with `mask` and `dtype` besides.
    """
    first, *others = like
    kind = "default"
    if dtype is None:
        kind = reduce(lambda kind, name: f"promote({kind}, {name}.dtype)", others, f"{first}.dtype")
    extent = f"tile_result({first}.shape" if columns is None else f"rows_result({first}, {columns}"
    parts = {name: f"as_large(left.part({name}), part)" for name in others}
    emit = f"lambda part, left: {_call(instruction, parts)}"
    body = f"{extent}, result_type(dtype, {kind}), mask, {emit})"
    return _spelled(instruction, "", body, defaults, default=dtype)


def in_place(instruction: Callable[..., object]) -> Callable[..., None]:
    """An instruction that writes into its argument `dst` in the older dialect too, restricted by a mask."""
    emit = f"lambda part, left: {_call(instruction, {})}"
    return _spelled(instruction, "*, dst, ", f"tile_written(dst, mask, {emit})", {})


def _shared(instruction: Callable[..., object]) -> list[inspect.Parameter]:
    """The arguments that an instruction has in both dialects, in their order."""
    present = inspect.signature(instruction).parameters.values()
    return [p for p in present if p.name not in ("dst", "dtype")]


def _call(instruction: Callable[..., object], parts: Mapping[str, str]) -> str:
    """The present instruction, on what the mask leaves of each operand."""
    names = [p.name for p in _shared(instruction)]
    record = TABLE.get(instruction.__name__)
    operands = names if record is None else [operand.name for operand in record.operands]
    given = (parts.get(n, f"left.part({n})") if n in operands else n for n in names)
    return f"instruction(part, {', '.join(given)})"


def _spelled(
    instruction: Callable[..., object], head: str, body: str, defaults: Mapping[str, Any], **names: Any
) -> Callable[..., Any]:
    name, kept = instruction.__name__, _shared(instruction)
    values = {p.name: defaults.get(p.name, p.default) for p in kept if p.default is not p.empty}
    arguments = [f"{p.name}=values[{p.name!r}]" if p.name in values else p.name for p in kept]
    keywords = [*(() if head else ("*",)), "mask=None", "dtype=None"]
    text = f"def {name}({head}{', '.join([*arguments, *keywords])}):\n    return {body}\n"
    space = {"__name__": __name__, **_NAMES, **names, "instruction": instruction, "values": values}
    exec(compile(text, f"<{name}>", "exec"), space)
    made: Callable[..., Any] = space[name]
    made.__doc__, made.__module__ = instruction.__doc__, __name__
    return made
