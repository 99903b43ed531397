"""Loops of kernels: ranges that note their variable, and loops whose bounds are known only when running."""

from __future__ import annotations

import dis
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.loop_locals import each_traced_once
from neuron_tools.nki.registers import VirtualRegister, register_value
from neuron_tools.nki.scalars import require_32_bits
from neuron_tools.nki.tile_arithmetic import TileArithmetic

UNNAMED = "_"
_BOUNDS = ("start", "stop", "step")


class LoopIndex(int):
    """A loop variable's value that knows, by its identity, which loop it counts (older dialect)."""


def known_bound(bound: Any) -> Any:
    """A loop's bound, which must be a number or a register.

    Raises:
        NkiValidationError: It is a tensor, whose values only the device knows.
    """
    if isinstance(bound, TileArithmetic):
        raise NkiValidationError(
            f"a loop's bound must be a number known while tracing, but this is a tensor of shape "
            f"{bound.shape}; use its shape, or load its value into a register (nisa.register_load) and loop "
            "with nl.fori_loop",
            tracing.where(),
        )
    if isinstance(bound, (float, np.floating, str)):
        raise NkiValidationError(
            f"a loop's bound must be a whole number, got {bound!r}; divide with // or round up with "
            "(n + step - 1) // step",
            tracing.where(),
        )
    require_32_bits(bound, "a loop's bound")
    return bound


class LoopRange:
    """A range of a kernel: as Python's, but instructions know the iteration that they belong to."""

    __slots__ = ("_code", "_frame", "_numbers", "_position")

    def __init__(self, *bounds: Any, depth: int = 1, traced_once: bool = False) -> None:
        if not all(type(bound) is int for bound in bounds):
            bounds = tuple(register_value(known_bound(bound)) for bound in bounds)
        self._numbers = range(*bounds)
        frame = sys._getframe(depth)
        self._code, self._position = frame.f_code, frame.f_lasti
        self._frame = frame if traced_once else None

    def __iter__(self) -> Iterator[int]:
        trace = tracing.running()
        if trace is None:
            return iter(self._numbers)
        if trace.older_dialect:
            return self._iterate_indices(trace)
        return self._iterate(trace) if trace.noting_loops else iter(self._numbers)

    def _iterate_indices(self, trace: tracing.Tracer) -> Iterator[int]:
        depth = len(trace.open_loops)
        numbers = self._iterate(trace) if trace.noting_loops else iter(self._numbers)
        try:
            for value in numbers if self._frame is None else each_traced_once(numbers, self._frame):
                index = LoopIndex(value)
                del trace.open_loops[depth:]
                trace.open_loops.append(index)
                yield index
        finally:
            del trace.open_loops[depth:]

    def _iterate(self, trace: tracing.Tracer) -> Iterator[int]:
        around = trace.place
        place = tracing.LoopPlace(around, _loop_at(trace, self._code, self._position), 0)
        try:
            for value in self._numbers:
                place.value, place.number = value, -1
                trace.place = place
                yield value
        finally:
            trace.place = around

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, key: Any) -> Any:
        return self._numbers[key]

    def __contains__(self, value: object) -> bool:
        return value in self._numbers

    def __reversed__(self) -> Iterator[int]:
        return reversed(self._numbers)

    def __eq__(self, other: object) -> bool:
        return self._numbers == (other._numbers if isinstance(other, LoopRange) else other)

    def __hash__(self) -> int:
        return hash(self._numbers)

    def __repr__(self) -> str:
        return repr(self._numbers)

    start = property(lambda self: self._numbers.start)
    stop = property(lambda self: self._numbers.stop)
    step = property(lambda self: self._numbers.step)


def loop_number(trace: tracing.Tracer, name: str, path: str, line: int) -> int:
    """The loop's number in the trace."""
    key = (name, path, line)
    number = trace.loop_numbers.get(key)
    if number is None:
        number = trace.loop_numbers[key] = len(trace.loops)
        trace.loops.append(key)
    return number


def _loop_at(trace: tracing.Tracer, code: CodeType, position: int) -> int:
    """Number of the loop whose range is made at a bytecode position."""
    known = trace.loops_at.get((id(code), position))
    if known is None:
        line = next((line for start, end, line in code.co_lines() if start <= position < end), None)
        number = loop_number(trace, loop_variable(code, position), code.co_filename, line or 0)
        known = trace.loops_at[id(code), position] = number, code
    return known[0]


@lru_cache(maxsize=4096)
def loop_variable(code: CodeType, position: int) -> str:
    """Name of the variable of the `for` whose range is being made at this bytecode position."""
    waiting = False
    for instruction in dis.get_instructions(code):
        if instruction.offset <= position:
            continue
        if instruction.opname == "FOR_ITER":
            waiting = True
        elif waiting and instruction.opname.startswith("STORE_"):
            return str(instruction.argval).split(",")[0].strip("(' ")
        elif waiting and instruction.opname != "UNPACK_SEQUENCE":
            return UNNAMED
    return UNNAMED


class EmptyLoopWarning(UserWarning):
    """A loop's end lies before its start, so it runs no iteration."""


def _declared(bounds: tuple[Any, ...], named: Mapping[str, Any], *, traced_once: bool = False) -> LoopRange:
    """The range of a loop that a kernel declares: bounds by position or as `start=`, `stop=`, `step=`.

    Raises:
        NkiValidationError: The step is 0, or there is no bound.

    Warns:
        EmptyLoopWarning: It counts away from its end, as in a loop over a negative number of tiles.
    """
    values = dict(zip(_BOUNDS, bounds)) | {name: named[name] for name in _BOUNDS if name in named}
    start, stop, step = values.get("start", 0), values.get("stop"), values.get("step", 1)
    start, stop = (0, start) if stop is None else (start, stop)
    if step == 0 or not values or len(bounds) > len(_BOUNDS):
        given = ", ".join([*map(str, bounds), *(f"{name}={value}" for name, value in named.items())])
        raise NkiValidationError(
            f"a loop takes (stop) or (start, stop[, step]) with a step other than 0, got ({given})",
            tracing.where(),
        )
    if type(start) is type(stop) is type(step) is int and (stop - start) * step < 0:
        warnings.warn(
            f"{tracing.where()}: the loop from {start} to {stop} in steps of {step} runs no iteration; count "
            "the other way, or write max(count, 0) if no iteration is intended",
            EmptyLoopWarning,
            stacklevel=3,
        )
    return LoopRange(start, stop, step, depth=3, traced_once=traced_once)


def affine_range(*bounds: Any, **named: Any) -> LoopRange:
    """Iterations that do not depend on one another: `affine_range(stop)` or `(start, stop[, step])`."""
    return _declared(bounds, named, traced_once=True)


def sequential_range(*bounds: Any, **named: Any) -> LoopRange:
    """Iterations that depend on earlier ones."""
    return _declared(bounds, named, traced_once=True)


def static_range(*bounds: Any, **named: Any) -> LoopRange:
    """Iterations that are unrolled while tracing."""
    return _declared(bounds, named)


def dynamic_range(start: Any, stop: Any = None, step: int = 1) -> LoopRange:
    """Iterations whose bounds may be registers, read when the loop starts."""
    bounds = (0, start, step) if stop is None else (start, stop, step)
    return LoopRange(*bounds, depth=2)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any], None], step: int = 1) -> None:
    """Call `body_fun(i)` with `i` a register, from `lower` to `upper` (exclusive).

    Args:
        lower: Number or register.
        upper: Number or register.
        body_fun: Body; its effects persist.
        step: Positive number.
    """
    _require_body("fori_loop", body_fun)
    for value in LoopRange(lower, upper, step, depth=2):
        body_fun(VirtualRegister(value))


def while_loop(init: VirtualRegister, body_fun: Callable[[VirtualRegister], VirtualRegister]) -> None:
    """Call `body_fun(r)` with the condition while it is not 0; it returns the next condition.

    Args:
        init: First condition.
        body_fun: Body.
    """
    trace = tracing.active()
    _require_condition(init, "the first condition")
    _require_body("while_loop", body_fun)
    frame = sys._getframe(1)
    loop = loop_number(trace, UNNAMED, frame.f_code.co_filename, frame.f_lineno or 0)
    around, condition, count = trace.place, init, 0
    while condition.read() != 0:
        if trace.noting_loops:
            trace.place = tracing.LoopPlace(around, loop, count)
        condition = body_fun(VirtualRegister(condition.read()))
        _require_condition(condition, "what the body returns")
        count += 1
    trace.place = around


def _require_condition(given: Any, what: str) -> None:
    if not isinstance(given, VirtualRegister):
        raise NkiValidationError(
            f"nl.while_loop goes on while a register is not 0, but {what} is {given!r}; load the condition "
            "with nisa.register_load or nisa.scalar_load, and return it from the body",
            tracing.where(),
        )


def _require_body(name: str, body: Any) -> None:
    try:
        inspect.signature(body).bind(0)
    except (TypeError, ValueError) as error:
        raise NkiValidationError(
            f"nl.{name} calls its body with one argument, but {body!r} does not take it ({error}); give a "
            "function of the iteration (fori_loop) or of the condition (while_loop)",
            tracing.where(),
        ) from None
