"""Address arithmetic of `tensor_scalar`: the three forms that GpSimd computes with 32-bit integers, exactly.

NKI's reference of `tensor_scalar` names the pattern (`tensor_scalar_addr`, NKI 0.7). Its forms are an index
scaled, an index scaled and moved, and whether an address lies in a range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.nki.isa.enums import as_member, engine as engines
from neuron_tools.nki.operators import find_operator
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.tracer import active
from neuron_tools.nki.values import exact
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Memory

_FORMS = {
    ("int32", "int32"): (("multiply",), ("multiply", "add")),
    ("uint32", "uint8"): (("subtract", "less"),),
}
"""Operators that make addresses, by the types of the data and of the result."""


def are_integers(operand0: Any, operand1: Any, reverse0: bool, reverse1: bool) -> bool:
    """Whether operands may be an address's: tiles or whole numbers, not swapped with the data.

    Args:
        operand0: A number, a register, a tile, or None.
        operand1: The same.
        reverse0: Whether the kernel swaps the first operator's operands.
        reverse1: The second's.
    """
    return not (
        reverse0 or reverse1 or isinstance(operand0, (float, np.floating))
        or isinstance(operand1, (float, np.floating))
    )  # fmt: skip


def makes_addresses(
    dst: ViewForm, data: ViewForm, operands: tuple[ViewForm | None, ...], operators: tuple[Any, ...],
    engine: engines,
) -> bool:  # fmt: skip
    """Whether GpSimd computes addresses of operands that are integers; the older dialect has no such form.

    Args:
        dst: The result's form.
        data: The data's.
        operands: Those of operands that are tiles; None for others.
        operators: `op0` and `op1`; None for one that is left out.
        engine: The one that the kernel names.
    """
    known = _FORMS.get((str(data.dtype), str(dst.dtype)))
    if known is None or active().older_dialect:
        return False
    if as_member(engines, engine) not in (engines.unknown, engines.gpsimd):
        return False
    tiles = [form for form in operands if form is not None]
    if any(form.memory is Memory.PSUM for form in (dst, data, *tiles)):  # which GpSimd does not reach
        return False
    named = tuple(find_operator(op).name for op in operators if op is not None)
    return named in known and all(form.dtype is data.dtype for form in tiles)


def address_values(data: Array, operators: tuple[Any, ...], operands: tuple[Any, ...]) -> Array:
    """The addresses, modulo 2**32.

    Args:
        data: (P, ...) 32-bit integers.
        operators: As of `makes_addresses`.
        operands: Numbers, registers or tiles (P, 1) of the data's type.
    """
    for op, operand in zip(operators, operands):
        if op is not None:
            data = find_operator(op).function(data, _scalar(operand, data))
    return data


def _scalar(operand: Any, data: Array) -> Array:
    if hasattr(operand, "array"):
        return exact(operand).reshape((-1,) + (1,) * (data.ndim - 1))
    number = operand.read() if isinstance(operand, VirtualRegister) else operand
    return np.array([int(number) & 0xFFFFFFFF], np.uint32).view(data.dtype)
