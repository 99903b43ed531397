"""A kernel's call as frameworks see it: a function from arrays to arrays, everything else fixed.

`KernelCall.of` takes the arrays out of a call's arguments. `form` traces the call for arrays of given shapes
and types, without values: what it returns, which arguments it writes, and what it makes of them. A framework
keeps the call under its number, and asks for values or for the form when it needs them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.frozen import frozen
from neuron_tools.nki.abstract import AbstractArray, Form, map_leaves
from neuron_tools.nki.arguments import find_adapter
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.run import Run
from neuron_tools.nki.tracer import Recording, Tracer


@frozen
class Given:
    """Stands for the array argument of this number."""

    number: int


@frozen
class Made:
    """Stands for the result of this number."""

    number: int


@frozen
class CallForm:
    """What a call does for arrays of certain forms.

    Attributes:
        results: Shape and type of each array that it returns.
        written: Numbers of the array arguments that it writes.
        structure: What it returns, `Made` where an array belongs.
        run: The run that found this, with one trace per core.
    """

    results: tuple[Form, ...]
    written: tuple[int, ...]
    structure: Any
    run: Run

    @property
    def is_data_dependent(self) -> bool:
        """Whether the kernel's course depends on values: another call may run other instructions."""
        return any(trace.data_dependent for trace in self.run.traces)

    def returned(self, made: Sequence[Any]) -> Any:
        """What the kernel returns, given the arrays of its results."""
        return map_leaves(self.structure, lambda leaf: isinstance(leaf, Made), lambda mark: made[mark.number])


@dataclass(eq=False)
class KernelCall:
    """A kernel with all of its arguments but the arrays.

    Attributes:
        kernel: The kernel with its grid.
        arguments, keywords: Its arguments, `Given` where an array belongs.
    """

    kernel: Kernel
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    _forms: dict[tuple[Form, ...], CallForm] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        is_array: Callable[[Any], bool],
    ) -> tuple[KernelCall, list[Any]]:
        """A call without its arrays, and the arrays; one that is given twice counts once."""
        arrays: list[Any] = []
        numbers: dict[int, int] = {}

        def take(array: Any) -> Given:
            if id(array) not in numbers:
                numbers[id(array)] = len(arrays)
                arrays.append(array)
            return Given(numbers[id(array)])

        taken = map_leaves((arguments, dict(keywords)), is_array, take)
        return cls(kernel, *taken), arrays

    def filled(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments and keyword arguments with arrays in their places."""
        filled: tuple[tuple[Any, ...], dict[str, Any]] = map_leaves(
            (self.arguments, self.keywords),
            lambda leaf: isinstance(leaf, Given),
            lambda mark: arrays[mark.number],
        )
        return filled

    def form(self, forms: tuple[Form, ...]) -> CallForm:
        """What the call does for arrays of these forms; found once.

        Raises:
            NkiError: The kernel breaks a rule.
        """
        known = self._forms.get(forms)
        if known is None:
            known = self._forms[forms] = self._trace(forms)
        return known

    def _trace(self, forms: tuple[Form, ...]) -> CallForm:
        arrays = [AbstractArray(shape, as_dtype(dtype)) for shape, dtype in forms]
        arguments, keywords = self.filled(arrays)
        return self.form_of(self.kernel.run(*arguments, values=False, **keywords))

    def form_of(self, run: Run) -> CallForm:
        """The form that a recorded run shows."""
        results: list[Any] = []

        def mark(array: Any) -> Made:
            results.append(array)
            return Made(len(results) - 1)

        structure = map_leaves(run.outputs, lambda leaf: find_adapter(leaf) is not None, mark)
        forms = tuple((tuple(tensor.shape), str(tensor.dtype)) for tensor in run.results)
        return CallForm(forms, _written_inputs(run.traces), structure, run)

    def compute(self, arrays: Sequence[Array]) -> list[Array]:
        """Values of the arrays that a call returns; NumPy arrays that it writes are changed in place."""
        arguments, keywords = self.filled(arrays)
        done = self.kernel.run(*arguments, recording=Recording.NOTHING, **keywords)
        return [tensor.array for tensor in done.results]


class CallTable:
    """Numbers calls: equal ones get one number."""

    def __init__(self) -> None:
        self._calls: list[KernelCall] = []
        self._numbers: dict[Any, int] = {}
        self._lock = threading.Lock()

    def __getitem__(self, number: int) -> KernelCall:
        return self._calls[number]

    def number(self, call: KernelCall) -> int:
        """The number of a call."""
        kernel = call.kernel
        constants = map_leaves((call.arguments, call.keywords), _is_array, _digest)
        key = (id(kernel.func), str(kernel.grid), repr(kernel.core), repr(constants))
        with self._lock:
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self._calls)
                self._calls.append(call)
        return number


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _digest(array: Array) -> tuple[Any, ...]:
    """What stands for an array among the constants: its printed form leaves elements out."""
    return array.shape, str(array.dtype), hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


CALLS = CallTable()
"""The calls of this process that graphs name by number."""


def _written_inputs(traces: Sequence[Tracer]) -> tuple[int, ...]:
    """Numbers of the arguments that instructions write."""
    numbers: set[int] = set()
    for trace in traces:
        rows, regions = trace.row_table(), trace.region_table()
        touched = rows[:, 3:5].ravel()
        buffers = set(regions[touched[touched >= 0], 0].tolist())
        inputs = [buffer.number for buffer in trace.buffers if buffer.kind == "input"]
        numbers.update(place for place, number in enumerate(inputs) if number in buffers)
    return tuple(sorted(numbers))
