"""Registers of the engine sequencers: scalars known only when the kernel runs."""

from __future__ import annotations

import operator
from typing import Any

from neuron_tools.nki.errors import NkiValidationError, UninitializedReadError
from neuron_tools.nki.tracer import active, where


class VirtualRegister:
    """A scalar register. It holds its value, so kernels may compute with it, index by it and loop on it.

    Attributes:
        value: The integer it holds; None until something is moved into it.
    """

    __slots__ = ("value",)

    def __init__(self, value: int | None = None) -> None:
        self.value = value

    def read(self) -> int:
        """The value.

        Raises:
            UninitializedReadError: Nothing was moved into it.
        """
        if self.value is None:
            raise UninitializedReadError("a register is read that nothing was loaded or moved into", where())
        return self.value

    def known_integers(self) -> int:
        """The value, as part of an index expression."""
        return self.read()

    def __index__(self) -> int:
        return self.read()

    __int__ = __index__

    def __bool__(self) -> bool:
        return self.read() != 0

    def __add__(self, other: Any) -> VirtualRegister:
        return VirtualRegister(self.read() + int(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> VirtualRegister:
        return VirtualRegister(self.read() - int(other))

    def __rsub__(self, other: Any) -> VirtualRegister:
        return VirtualRegister(int(other) - self.read())

    def __mul__(self, other: Any) -> VirtualRegister:
        return VirtualRegister(self.read() * int(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> VirtualRegister:
        return VirtualRegister(self.read() // int(other))

    def __mod__(self, other: Any) -> VirtualRegister:
        return VirtualRegister(self.read() % int(other))

    def __lt__(self, other: Any) -> bool:
        return self.read() < int(other)

    def __le__(self, other: Any) -> bool:
        return self.read() <= int(other)

    def __gt__(self, other: Any) -> bool:
        return self.read() > int(other)

    def __ge__(self, other: Any) -> bool:
        return self.read() >= int(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, VirtualRegister)):
            return self.read() == int(other)
        return NotImplemented

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"VirtualRegister({self.value})"


def register_value(value: Any) -> int:
    """The integer that an int, a register or a one-element tensor stands for at this point of the run.

    Raises:
        NkiValidationError: It is no whole number.
    """
    if isinstance(value, int):
        return value
    if isinstance(value, VirtualRegister):
        return value.read()
    if hasattr(value, "array"):
        active().needs_values()
        return int(value.array.reshape(-1)[0])
    try:
        return operator.index(value)
    except TypeError:
        raise NkiValidationError(
            f"an index must be a whole number, got {value!r}; divide with //", where()
        ) from None
