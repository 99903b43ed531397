"""What a kernel returns: refused where nothing was written there, or where its results are lost."""

from __future__ import annotations

import dis
import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any

from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.errors import NkiValidationError, UninitializedReadError
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer


class UnwrittenWarning(UserWarning):
    """A kernel reads or returns a tensor of which nothing has written a part."""


def check_written(function: Callable[..., Any], returned: Sequence[NkiTensor]) -> None:
    """Refuse tensors that nothing has written.

    Args:
        function: The kernel's function.
        returned: The tensors that it returned.

    Raises:
        UninitializedReadError: Nothing was written anywhere in one.

    Warns:
        UnwrittenWarning: Nothing was written in a part of one.
    """
    for storage in {id(tensor.backing): tensor.backing for tensor in returned}.values():
        held = storage.holds(0, storage.lines, 0, storage.pitch_bytes)
        what = f"the kernel returns {storage.name or 'a tensor'} of shape {storage.shape}"
        if held == 0:
            raise UninitializedReadError(
                f"{what}, but nothing has been written there; write it first (nisa.dma_copy or nl.store)",
                returning_line(function),
            )
        if held == 1:
            warnings.warn(
                f"{returning_line(function)}: {what}, but nothing has written a part of it, where the device "
                "leaves anything; write all of it, or return a smaller tensor",
                UnwrittenWarning,
                stacklevel=2,
            )


def check_kind(function: Callable[..., Any], value: Any) -> None:
    """Refuse a result that is not a tensor; what stands in a record of the kernel's own is left to it.

    Args:
        function: The kernel's function.
        value: What it returned, or an element of that.

    Raises:
        NkiValidationError: It is a number, a string, an array or something else that no device returns.
    """
    if value is None or (is_dataclass(value) and not isinstance(value, type)):
        return
    given = repr(value) if isinstance(value, (int, float, str, MemoryRegion)) else f"a {type(value).__name__}"
    raise NkiValidationError(
        f"the kernel returns {given}, but a kernel returns tensors in HBM; return one that it has written "
        "(nl.ndarray(..., buffer=nl.shared_hbm)), and compute numbers outside",
        returning_line(function),
    )


def check_lost(function: Callable[..., Any], trace: Tracer) -> None:
    """Refuse a kernel that returns nothing, though it wrote to HBM and to none of its arguments.

    Args:
        function: The kernel's function, which returned no tensor.
        trace: Its trace, recorded.

    Raises:
        NkiValidationError: Names the tensor that is lost.
    """
    written = _touched(trace, 2, 4)
    if any(storage.kind == "input" for storage in written):
        return
    read = {storage.number for storage in _touched(trace, 4, 8)}
    for storage in written:
        if not storage.on_chip and storage.number not in read:
            raise NkiValidationError(
                f"the kernel writes {storage.name or 'a tensor'} of shape {storage.shape} in HBM, but "
                "returns nothing, so that its result is lost; return the tensor",
                returning_line(function),
            )


def _touched(trace: Tracer, first: int, last: int) -> list[Buffer]:
    """The memories of the regions that calls have in these columns."""
    regions = {call[column] for call in trace.calls for column in range(first, last)} - {-1}
    return [trace.buffers[number] for number in sorted({trace.regions[region][0] for region in regions})]


def returning_line(function: Callable[..., Any]) -> str:
    """The line of a kernel's last return statement, "file:line in function"."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    lines = {at: line for at, line in dis.findlinestarts(code) if line is not None}
    returns = [i.offset for i in dis.get_instructions(code) if i.opname.startswith("RETURN_")]
    line = next((lines[at] for at in range(max(returns, default=0), -1, -1) if at in lines), 0)
    return f"{code.co_filename}:{line} in {code.co_name}"
