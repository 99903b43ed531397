"""What all instructions share: getting the trace, checking operands, recording, and common rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.backend.kinds import Kind, Step
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.isa.enums import engine as engines
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Flag, Memory, Opcode

FLOATS = ("float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2", "float8_e4m3fn")
"""Types of numbers with a fraction, one an element."""


def ready() -> Tracer:
    """The running trace, with held-back results stored."""
    trace = tracing.active()
    if trace.pending is not None:
        trace.flush(trace.pending)
    return trace


def form_of(operand: Any) -> ViewForm | None:
    """The form of a tensor operand (resolved), or None for numbers and registers."""
    if isinstance(operand, NkiTensor):
        if operand.region < 0:
            operand.resolve()
        form: ViewForm = operand.form
        return form
    return None


def issue(trace: Tracer, kind: Kind, dst: NkiTensor, *sources: Any, second: NkiTensor | None = None) -> None:
    """Check what is read, record the instruction, and note what it writes."""
    regions = [-1, -1, -1, -1]
    at = 0
    for source in sources:
        if isinstance(source, NkiTensor):
            storage = source.storage
            if not storage.complete:  # type: ignore[union-attr]  # what is issued has memory
                trace.check_read(source)
            if at < 4:
                regions[at] = source.region
                at += 1
    trace.record(kind, dst.region, -1 if second is None else second.region, *regions)
    if not dst.storage.complete:  # type: ignore[union-attr]  # what is issued has memory
        trace.mark_written(dst)
    if second is not None and not second.storage.complete:  # type: ignore[union-attr]  # what is issued has memory
        trace.mark_written(second)


def refuse(message: str) -> NkiValidationError:
    """The error for a broken rule, at the kernel's line."""
    return NkiValidationError(message, tracing.where())


def require_tensors(name: str, **operands: Any) -> None:
    """Refuse operands that are no tensors of the kernel.

    Raises:
        NkiValidationError: Says what was given and what to do.
    """
    for operand, given in operands.items():
        if not isinstance(given, NkiTensor):
            raise refuse(f"{name} takes a tensor as {operand}, but got {_described(given)}")


def _described(given: Any) -> str:
    """What a kernel gave in place of a tensor, and what to give."""
    if isinstance(given, NkiInstruction):
        return "the result of another instruction, which is none; give the tensor that it wrote, its dst"
    if isinstance(given, np.ndarray):
        return "an array of NumPy; pass it to the kernel as an argument, or fill a tile (nisa.memset)"
    what = "None" if given is None else f"a {type(given).__name__}"
    return f"{what}; declare a tensor (nl.ndarray), or pass an array as the kernel's argument"


def require_on_chip(name: str, **forms: ViewForm | None) -> None:
    """Refuse operands in HBM.

    Raises:
        NkiValidationError: Names the operand.
    """
    for operand, form in forms.items():
        if form is not None and form.memory is Memory.HBM:
            raise refuse(
                f"{name} takes tiles in SBUF or PSUM, but {operand} of shape {form.shape} lies in HBM; copy "
                "it on chip first (nisa.dma_copy or nl.load)"
            )


def require_memory(name: str, memory: Memory, **forms: ViewForm | None) -> None:
    """Refuse operands outside one memory.

    Raises:
        NkiValidationError: Names the operand.
    """
    for operand, form in forms.items():
        if form is not None and form.memory is not memory:
            raise refuse(
                f"{name} needs {operand} in {memory.name}, but the tile of shape {form.shape} lies in "
                f"{form.memory.name}"
            )


def require_same_size(name: str, first: ViewForm, second: ViewForm, what: str) -> None:
    """Refuse operands of different partitions or elements per partition.

    Raises:
        NkiValidationError: Shows both shapes.
    """
    if first.partitions != second.partitions or first.elements != second.elements:
        raise refuse(
            f"{name}: {what} must have the same partitions and elements per partition, got shapes "
            f"{first.shape} and {second.shape}"
        )


def require_start_partition(name: str, **forms: ViewForm | None) -> None:
    """Refuse tiles that start at a partition where the engines cannot start.

    Raises:
        NkiValidationError: Names the operand and where it may start.
    """
    for operand, form in forms.items():
        if form is None or form.line <= 0:
            continue
        step = 32 if form.partitions <= 32 else (64 if form.partitions <= 64 else 128)
        if form.line % step:
            raise refuse(
                f"{name}: {operand} starts at partition {form.line} with {form.partitions} partitions; "
                f"engines access that many only from partitions that are multiples of {step}"
            )


def require_column(name: str, operand: str, form: ViewForm | None, partitions: int) -> None:
    """Refuse scalar operands that do not have one element per partition.

    Raises:
        NkiValidationError: Shows the shape.
    """
    if form is not None and (form.elements != 1 or form.partitions not in (1, partitions)):
        raise refuse(
            f"{name}: {operand} must be a number or a tile of shape ({partitions}, 1), got {form.shape}"
        )


def require_comparisons(name: str, **given: Any) -> None:
    """Refuse operators that compare nothing.

    Args:
        name: The instruction.
        given: The operators by argument; None where there is none.

    Raises:
        NkiValidationError: Names the argument.
    """
    _require(name, given, lambda op: op.comparison, "a comparison", "nl.greater_equal")


def require_maximum(name: str, reduce_op: Any) -> None:
    """Refuse other reductions than the maximum, where the engine has no other.

    Raises:
        NkiValidationError: Names the operator.
    """
    if reduce_op is not None and (op := find_operator(reduce_op)).name != "maximum":
        raise refuse(f"{name} reduces by nl.maximum alone, got {op.name}; call nisa.tensor_reduce for others")


def require_arithmetic(name: str, **given: Any) -> None:
    """Refuse operators that do not compute with two numbers.

    Args:
        name: The instruction.
        given: The operators by argument; None where there is none.

    Raises:
        NkiValidationError: Names the argument.
    """
    _require(name, given, lambda op: op.arity == 2 and not op.bitwise, "a function of two numbers", "nl.add")


def _require(
    name: str, given: Mapping[str, Any], fits: Callable[[Operator], bool], wanted: str, such_as: str
) -> None:
    for argument, given_op in given.items():
        if given_op is not None and not fits(op := find_operator(given_op)):
            raise refuse(f"{name}: {argument} must be {wanted}, got {op.name}; use {such_as} or another")


def require_predicate(name: str, predicate: ViewForm) -> None:
    """Refuse a predicate of floats.

    Raises:
        NkiValidationError: Shows the type.
    """
    if predicate.dtype.is_float:
        raise refuse(
            f"{name} takes an integer predicate, got {predicate.dtype}; compare into a tile of nl.uint8"
        )


def require_types(name: str, types: tuple[str, ...], **forms: ViewForm | None) -> None:
    """Refuse operands of other element types.

    Raises:
        NkiValidationError: Names the operand and what to do.
    """
    wanted = " or ".join(", ".join(types).rsplit(", ", 1))
    for operand, form in forms.items():
        if form is not None and str(form.dtype) not in types:
            raise refuse(
                f"{name} takes {operand} as {wanted}, got {form.dtype}; convert it first (nisa.tensor_copy "
                "into a tile of that type)"
            )


def require_integers(name: str, op: Operator, *forms: ViewForm) -> None:
    """Refuse floats where an operator works on bit patterns.

    Raises:
        NkiValidationError: Shows the type.
    """
    if op.bitwise:
        for form in forms:
            if form.dtype.is_float:
                raise refuse(
                    f"{name} with {op.name} works on bit patterns of integers, but a tile is {form.dtype}"
                )


def require_reach(name: str, chosen: Engine, *forms: ViewForm | None) -> None:
    """Refuse tiles in PSUM where GpSimd runs an instruction.

    Raises:
        NkiValidationError: Says what runs it instead.
    """
    if chosen is Engine.GPSIMD and any(f is not None and f.memory is Memory.PSUM for f in forms):
        raise refuse(f"{name} on GpSimd cannot reach PSUM; use the Vector engine or copy to SBUF first")


def open_engines(engine: engines, dst: ViewForm, source: ViewForm) -> tuple[Engine, ...]:
    """The engines among which a copy or an affine operation leaves the choice open; empty: it leaves none.

    The Scalar engine computes in fp32, so 32-bit integers stay on the Vector engine.
    """
    if engine.chosen is not None or dst.dtype.is_32bit_integer or source.dtype.is_32bit_integer:
        return ()
    return Engine.SCALAR, Engine.VECTOR


def compute_step(
    engine: Engine,
    opcode: Opcode,
    dst: ViewForm,
    source: ViewForm | None = None,
    second: ViewForm | None = None,
    *,
    elements: int = 0,
    flags: Flag = Flag.NONE,
    activation: str = "",
    waits: tuple[int, ...] = (0, 1, 2, 3, 4, 5),
) -> Step:
    """The row of an instruction of the Vector, Scalar or GpSimd engine."""
    read = source if source is not None else dst
    if not dst.contiguous or not read.contiguous or (second is not None and not second.contiguous):
        flags |= Flag.STRIDED
    if second is not None and source is not None and _one_in_psum(source, second):
        flags |= Flag.SECOND_OPERAND_PSUM
    return Step(
        engine=engine,
        opcode=opcode,
        input_dtype=read.dtype.chip,
        output_dtype=dst.dtype.chip,
        source_memory=source.memory if source is not None else Memory.NONE,
        destination_memory=dst.memory,
        activation=activation,
        flags=flags,
        partitions=max(read.partitions, dst.partitions) if source is not None else dst.partitions,
        elements=elements or max(read.elements, dst.elements),
        waits=waits,
        source=2 if source is not None else -1,
        second_source=3 if second is not None else -1,
        writes=(0, 1),
    )


def _one_in_psum(first: ViewForm, second: ViewForm) -> bool:
    return (first.memory is Memory.PSUM) != (second.memory is Memory.PSUM)


def shaped(values: Array, shape: tuple[int, ...]) -> Array:
    """Values in the shape of a tile with as many elements (or broadcast to it)."""
    if values.shape == shape:
        return values
    if values.size == math.prod(shape):
        return values.reshape(shape)
    if values.ndim < len(shape) and values.ndim and values.shape[0] == shape[0]:
        values = values.reshape(values.shape[:1] + (1,) * (len(shape) - values.ndim) + values.shape[1:])
    return np.broadcast_to(values, shape)
