"""`nki.isa.NkiScalar`: an integer computed on the device, of a fixed width (NKI 0.7).

What is known of it while a kernel is traced is what AWS documents for NkiScalar: +, - and * at 32 and 64
bits, which wrap; 32-bit ones bound loops; 64-bit offsets reach HBM only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from neuron_tools.nki import dtypes
from neuron_tools.nki.dtypes import DType
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.registers import VirtualRegister, register_value
from neuron_tools.nki.tracer import where


class NkiScalar(VirtualRegister):
    """An integer on the device. Arithmetic makes new ones; a kernel's Python cannot decide by its value.

    Attributes:
        dtype: int32 or int64.
        is_comparison: Whether it is the result of a comparison, which nothing can use.
    """

    __slots__ = ("dtype", "is_comparison")

    def __init__(self, state: int, dtype: Any = None, is_comparison: bool = False) -> None:
        self.dtype: DType = dtypes.int32 if dtype is None else dtypes.as_dtype(dtype)
        self.is_comparison = is_comparison
        super().__init__(_wrapped(int(state), self.dtype))

    def read(self) -> int:
        """The value.

        Raises:
            NkiValidationError: It is a comparison.
        """
        if self.is_comparison:
            raise NkiValidationError(
                "the result of comparing an NkiScalar cannot be used; compare tiles with nisa.tensor_scalar",
                where(),
            )
        return super().read()

    def __index__(self) -> int:
        self.read()  # the result of a comparison has an error of its own
        raise _unknown("compute with it (as a shape, a bound of range, an int)")

    __int__ = __index__

    def __bool__(self) -> bool:
        raise _unknown("decide by it")

    def _with(self, other: Any, compute: Callable[[int, int], int]) -> NkiScalar:
        if isinstance(other, NkiScalar) and other.dtype is not self.dtype:
            raise NkiValidationError(
                f"scalars of {self.dtype} and {other.dtype} do not mix; load both at the same width", where()
            )
        return NkiScalar(compute(self.read(), register_value(other)), self.dtype)

    def _compared(self, other: Any) -> NkiScalar:
        if self.dtype is dtypes.int64:
            raise NkiValidationError(
                "scalars of int64 cannot be compared; at 64 bits there are +, - and * only", where()
            )
        return NkiScalar(0, self.dtype, is_comparison=True)

    def _missing(self, other: Any) -> NkiScalar:
        raise NkiValidationError(
            "an NkiScalar knows +, - and * only; use these, or compute on a tile", where()
        )

    def __add__(self, other: Any) -> NkiScalar:
        return self._with(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> NkiScalar:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> NkiScalar:
        return self._with(other, lambda own, given: given - own)

    def __mul__(self, other: Any) -> NkiScalar:
        return self._with(other, operator.mul)

    __rmul__ = __mul__

    def __neg__(self) -> NkiScalar:
        return NkiScalar(-self.read(), self.dtype)

    def __pos__(self) -> NkiScalar:
        return NkiScalar(self.read(), self.dtype)

    __truediv__ = __floordiv__ = __mod__ = _missing
    __lt__ = __le__ = __gt__ = __ge__ = _compared  # type: ignore[assignment]  # raises, so returns nothing
    __eq__ = __ne__ = _compared  # type: ignore[assignment]  # raises, so returns nothing
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"NkiScalar({self.value}, {self.dtype})"


def _unknown(what: str) -> NkiValidationError:
    return NkiValidationError(
        f"an NkiScalar's value is known on the device only, so Python cannot {what}; loop with nl.fori_loop "
        "or nl.while_loop, select with masks, or give it as a scalar_offset",
        where(),
    )


def _wrapped(value: int, dtype: DType) -> int:
    """An integer as two's complement of the type's width keeps it."""
    span = 1 << (8 * dtype.itemsize)
    low = value % span
    return low - span if low >= span // 2 else low


def require_32_bits(value: Any, what: str) -> None:
    """Refuse a 64-bit scalar where the hardware takes 32 bits.

    Raises:
        NkiValidationError: Says where.
    """
    if isinstance(value, NkiScalar) and value.dtype is dtypes.int64:
        raise NkiValidationError(
            f"{what} takes a scalar of int32, but this one is int64; load it from an int32 tile", where()
        )
