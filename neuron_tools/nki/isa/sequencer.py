"""Registers of the engine sequencers: allocation, loads, stores and moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.backend.kinds import Kind, Step
from neuron_tools.nki.isa.instruction import NkiInstruction, issued
from neuron_tools.nki.isa.issue import compute_step, form_of, issue, ready, refuse
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.scalars import NkiScalar
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Memory, Opcode


def register_alloc(x: int | None = None) -> VirtualRegister:
    """A new register holding `x`, or nothing yet."""
    if isinstance(x, NkiTensor):
        register = VirtualRegister()
        register_load(register, x)
        return register
    return VirtualRegister(None if x is None else int(x))


def register_move(dst: VirtualRegister, src: int | VirtualRegister) -> NkiInstruction:
    """dst = src, a number or another register."""
    dst.value = int(src)
    return issued()


def _form_of_one(tensor: NkiTensor, rule: str) -> ViewForm:
    form = form_of(tensor)
    assert form is not None
    if form.size != 1:
        raise refuse(f"{rule} has shape {tensor.shape}")
    return form


def register_load(dst: VirtualRegister, src: NkiTensor) -> NkiInstruction:
    """dst = the single element of `src` (HBM or SBUF).

    Raises:
        NkiValidationError: `src` has more than one element.
    """
    trace = ready()
    form = _form_of_one(src, "register_load reads one element, but src")
    if form.dtype.is_float:
        raise refuse(
            f"register_load reads an integer, but src is {form.dtype}; convert it first (nisa.tensor_copy)"
        )
    key = (register_load, form)
    kind = trace.kinds.get(key)
    if kind is None:
        step = Step(Engine.SYNC, Opcode.NOP, form.dtype.chip, form.dtype.chip, form.memory, Memory.REGISTER,
                    elements=1, partitions=1, waits=(2,), source=2)  # fmt: skip
        kind = trace.add_kind(key, Kind("register_load", (step,)))
    if not src.storage.complete:  # type: ignore[union-attr]  # what is loaded has memory
        trace.check_read(src)
    trace.record(kind, -1, -1, src.region)
    trace.needs_values()
    dst.value = int(src.array.reshape(-1)[0])
    return NkiInstruction(trace)


def register_store(dst: NkiTensor, src: VirtualRegister) -> NkiInstruction:
    """The single element of `dst` (HBM or SBUF) = src.

    Raises:
        NkiValidationError: `dst` has more than one element.
    """
    trace = ready()
    form = _form_of_one(dst, "register_store writes one element, but dst")
    key = (register_store, form)
    kind = trace.kinds.get(key)
    if kind is None:
        kind = trace.add_kind(key, Kind("register_store", (compute_step(Engine.SYNC, Opcode.NOP, form),)))
    issue(trace, kind, dst)
    if trace.values:
        value: Any = src.read() if isinstance(src, VirtualRegister) else int(src)
        write(dst, np.array([value], np.int64))
    return NkiInstruction(trace)


def scalar_load(src: NkiTensor) -> NkiScalar:
    """The single element of `src` (HBM or SBUF) as a scalar of its type.

    Args:
        src: A tensor of one element, int32 or int64.

    Raises:
        NkiValidationError: `src` has more than one element, or another type.
    """
    _require_width("scalar_load", src)
    held = VirtualRegister()
    register_load(held, src)
    return NkiScalar(held.read(), src.dtype)


def scalar_store(dst: NkiTensor, value: NkiScalar) -> NkiInstruction:
    """The single element of `dst` (HBM or SBUF) = value.

    Args:
        dst: A tensor of one element, of the scalar's type.
        value: The scalar.

    Raises:
        NkiValidationError: `value` is no scalar, or `dst` has another type.
    """
    if not isinstance(value, NkiScalar):
        raise refuse("scalar_store takes an NkiScalar; write a constant with nisa.memset")
    _require_width("scalar_store", dst)
    if dst.dtype is not value.dtype:
        raise refuse(
            f"scalar_store writes a scalar of {value.dtype}, but dst holds {dst.dtype}; store it at its own "
            "width and convert it in memory"
        )
    return register_store(dst, value)


def _require_width(name: str, view: NkiTensor) -> None:
    if str(view.dtype) not in ("int32", "int64"):
        raise refuse(f"{name} takes a tensor of int32 or int64, got {view.dtype}; convert it first")
