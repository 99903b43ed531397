"""Python's operators on tiles: each is a function of the language."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.index import Index
from neuron_tools.nki.view import View

Own = TypeVar("Own", bound="TileArithmetic")


def _operator(name: str, swapped: bool = False) -> Callable[[Own, Any], Own]:
    """A method of two operands that computes what the language's function of that name does."""

    def operate(self: Own, other: Any) -> Own:
        return self._binary(name, other, swapped)

    return operate


def _comparison(name: str) -> Callable[[Own, Any], Own]:
    """A method that compares each element as the language's function of that name does."""

    def compare(self: Own, other: Any) -> Own:
        return self._compared(name, other)

    return compare


class TileArithmetic(View):
    """What tensors inherit their operators from."""

    __slots__ = ()

    arithmetic: ClassVar[dict[str, Callable[..., Any]]] = {}
    """Python's operators by name, filled in by the language: `add(x, y)` and so on."""

    def _binary(self: Own, name: str, other: Any, swapped: bool = False) -> Own:
        if isinstance(other, Index):  # a tile of offsets in an index expression: the expression takes over
            return cast("Own", NotImplemented)
        function = self.arithmetic[name]
        result: Own = function(other, self) if swapped else function(self, other)
        return result

    def _compared(self: Own, name: str, other: Any) -> Own:
        """A tile of conditions; Python cannot decide by it."""
        result = self._binary(name, other)
        emit = getattr(result, "emit", None)
        if emit is not None:
            emit.is_condition = True
        return result

    __add__, __radd__ = _operator("add"), _operator("add", True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", True)
    __pow__ = _operator("power")
    __and__ = _operator("bitwise_and")
    __or__ = _operator("bitwise_or")
    __xor__ = _operator("bitwise_xor")
    __lshift__ = _operator("left_shift")
    __rshift__ = _operator("right_shift")
    __lt__ = _comparison("less")
    __le__ = _comparison("less_equal")
    __gt__ = _comparison("greater")
    __ge__ = _comparison("greater_equal")

    def __eq__(self, other: object) -> Any:
        """Where elements equal a number or a tile's, in the older dialect; else whether it is the object."""
        return self._compared("equal", other) if _compares(self, other) else self is other

    def __ne__(self, other: object) -> Any:
        return self._compared("not_equal", other) if _compares(self, other) else self is not other

    __hash__ = object.__hash__

    def __matmul__(self, other: Any) -> Any:
        raise NkiValidationError(
            "@ is no operator of tensors; multiply tiles with nisa.nc_matmul, which contracts over the "
            "partitions, or nl.matmul",
            tracing.where(),
        )

    def __neg__(self: Own) -> Own:
        result: Own = self.arithmetic["negative"](self)
        return result

    def __invert__(self: Own) -> Own:
        result: Own = self.arithmetic["invert"](self)
        return result

    def __abs__(self: Own) -> Own:
        result: Own = self.arithmetic["abs"](self)
        return result

    # What Python itself would have to know of the elements

    def __bool__(self) -> bool:
        """Whether there is a tensor, as for any object: `if weights:` asks whether they are given.

        Raises:
            NkiValidationError: It has one element and is no argument of the kernel, or comes from comparing
                tiles just now: values are asked for.
        """
        if prod(self._shape) == 1 and not self._is_argument():
            raise _unknown("to know whether an element is true")
        if getattr(self.emit, "is_condition", False):
            raise _unknown("to know whether a comparison of tiles is true")
        return True

    def _is_argument(self) -> bool:
        """Whether it is a whole argument of the kernel, not an element that was picked out of one."""
        storage = self.storage  # None: a result that nothing has stored yet
        return storage is not None and storage.kind == "input" and prod(storage.shape) == 1

    def __int__(self) -> int:
        raise _unknown("a tensor as an int")

    def __array__(self, *_arguments: Any, **_options: Any) -> Any:
        raise _unknown("a tensor as an array of NumPy")

    def __float__(self) -> float:
        raise _unknown("a tensor as a float")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_options: Any) -> Any:
        """`np.float32(2) * tile` is `2.0 * tile`; NumPy's other functions need the elements."""
        name = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or name is None:
            raise NkiValidationError(
                f"np.{ufunc.__name__} is NumPy's, which cannot compute with a tile on the device; use the "
                "function of nki.language or nki.isa",
                tracing.where(),
            )
        first, second = (value.item() if isinstance(value, np.generic) else value for value in inputs)
        return self.arithmetic[name](first, second)

    def _in_place(self: Own, name: str, other: Any) -> Own:
        """`self op= other`; a matmul that is held back accumulates in PSUM instead."""
        trace = tracing.active()
        if name == "add" and trace.accumulates(other, self):
            return self
        result = self.arithmetic[name](self, other)
        if result.emit is not None:
            trace.settle(result, self)
        else:
            self.arithmetic["assign"](self, result)
        return self

    def __iadd__(self: Own, other: Any) -> Own:
        return self._in_place("add", other)

    def __isub__(self: Own, other: Any) -> Own:
        return self._in_place("subtract", other)

    def __imul__(self: Own, other: Any) -> Own:
        return self._in_place("multiply", other)

    def __itruediv__(self: Own, other: Any) -> Own:
        return self._in_place("divide", other)


_UFUNCS = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "less": "less",
    "less_equal": "less_equal", "greater": "greater", "greater_equal": "greater_equal",
}  # fmt: skip
"""Functions of the language by the ufuncs that NumPy's numbers call for Python's operators."""


def _unknown(what: str) -> NkiValidationError:
    return NkiValidationError(
        f"the kernel needs {what}, but values are known on the device only; use its shape or a number, "
        "select elements with nl.where, or load one into a register (nisa.register_load)",
        tracing.where(),
    )


def _compares(tile: TileArithmetic, other: object) -> bool:
    """Whether `==` between them is a computation of the kernel that runs.

    Raises:
        NkiValidationError: A tensor is compared with a number, which the present dialect computes with
            `nisa.tensor_scalar` only.
    """
    if tile is other or not isinstance(other, (int, float, TileArithmetic)):
        return False
    trace = tracing.running()
    if trace is not None and not trace.older_dialect and not isinstance(other, TileArithmetic):
        raise NkiValidationError(
            f"a tensor is compared with {other!r}, but values are known on the device only; compare them "
            "there (nisa.tensor_scalar with nl.equal or nl.not_equal)",
            tracing.where(),
        )
    return trace is not None and trace.older_dialect
