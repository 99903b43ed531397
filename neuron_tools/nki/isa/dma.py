"""DMA instructions: copies between HBM and SBUF, transposes, and sums on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuron_tools.backend.kinds import Kind, Transfer
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import OutOfBoundsError
from neuron_tools.nki.isa.copies import converted
from neuron_tools.nki.isa.enums import as_member, dge_mode as modes, engine as engines, oob_mode as bounds
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import form_of, issue, ready, refuse, require_tensors
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import BY_DMA, Call, Derived, Instruction, Operand
from neuron_tools.nki.operators import find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.values import cast, exact, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Memory

IN_PLACE = "copied onto themselves"
"""What a trace notes regions under that a copy left as they are."""
_MADE_BY = {modes.unknown: "", modes.swdge: "software", modes.hwdge: "hardware", modes.none: "runtime"}


def _copied(call: Call) -> Kind:
    given = call.given
    return Kind("dma_copy", transfer=copy_transfer(
        call.trace, "dma_copy", call.form("dst"), call.form("src"), given["dge_mode"], given["engine"],
        indirect=given["dst_gathered"] or given["src_gathered"],
    ))  # fmt: skip


def _check_copy(call: Call) -> None:
    """Refuse an engine that starts no DMA, and a priority that does not exist."""
    engine, priority = call.given["engine"], call.given["priority"]
    if engine not in (engines.unknown, engines.sync, engines.scalar, engines.gpsimd, engines.dma):
        raise refuse(
            f"dma_copy takes the engine that starts it (sync, scalar or gpsimd), got {engine.name}; the data "
            "moves through the DMA engines all the same"
        )
    if priority is not None and priority not in range(4):
        raise refuse(f"dma_copy takes a priority from 0 (highest) to 3, got {priority}")


@instruction(Instruction(
    "dma_copy", None, (),
    (Operand("dst", BY_DMA, written=True, gathered=True), Operand("src", BY_DMA, gathered=True)),
    key=("dge_mode", "engine", "oob_mode", "priority"), older_in_psum=True, rule=_check_copy, build=_copied,
))  # fmt: skip
def dma_copy(
    dst: NkiTensor,
    src: NkiTensor,
    priority: int | None = None,
    oob_mode: bounds = bounds.error,
    dge_mode: modes = modes.unknown,
    engine: engines = engines.unknown,
    name: str | None = None,
    dst_rmw_op: Any = None,
    unique_indices: bool = True,
) -> None:
    """dst = src between HBM and SBUF, converted through fp32 where the types differ.

    Args:
        dst: Tensor in HBM or SBUF, of as many elements as `src`; may be indexed indirectly (scatter).
        src: Tensor in HBM or SBUF; may be indexed indirectly (gather).
        priority: Quality of service, 0 to 3.
        oob_mode: What an index out of bounds does: an error, or its elements are left out.
        dge_mode: Who makes the descriptors.
        engine: The engine that starts it.
        name: The profile's name for the call.
        dst_rmw_op: `nl.add`: add to what `dst` holds.
        unique_indices: Whether scattered indices are unique.

    Raises:
        NkiValidationError: A rule is broken, or an index is out of bounds.
    """
    if dst.gather is not None or src.gather is not None or dst_rmw_op is not None:
        move(dst, src, oob_mode, dst_rmw_op)
    elif dst.region == src.region and dst.form is src.form:  # as kernels wait for a tensor
        tracing.active().shared.setdefault(IN_PLACE, set()).add(dst.region)
    else:
        write(dst, converted(src, dst))


def move(dst: NkiTensor, src: NkiTensor, oob_mode: bounds, op: Any = None) -> None:
    """Copy with positions that may be out of bounds, and with an optional operation on the destination.

    Raises:
        NkiValidationError: The operation is not one that DMA does.
        OutOfBoundsError: A position is out of bounds, and `oob_mode` does not skip it.
    """
    if op is not None and find_operator(op).name != "add":
        raise refuse(
            f"dma_copy adds to what dst holds, but dst_rmw_op is {find_operator(op).name}; use nl.add"
        )
    dst.backing.make_own()
    values = (exact(src) if src.gather is None else _taken(src)).reshape(-1)
    if op is not None:
        held = single(dst) if dst.gather is None else _taken(dst).astype(np.float32)
        values = find_operator(op).function(held.reshape(-1), values.astype(np.float32))
    if _leaves_out(src) or _leaves_out(dst):
        _require_skipping(oob_mode)
        _move_kept(dst, src, values)
    elif dst.gather is None:
        write(dst, values.reshape(dst.shape))
    else:
        dst.flat[dst.gather.reshape(-1)] = cast(np.asarray(values), dst.dtype)


def _move_kept(dst: NkiTensor, src: NkiTensor, values: Any) -> None:
    """Store the values of the positions that lie within both bounds."""
    kept = np.ones(dst.size, bool)
    for view in (src, dst):
        if view.gather is not None:
            kept &= view.gather.reshape(-1) >= 0
    if dst.gather is not None:
        dst.flat[dst.gather.reshape(-1)[kept]] = cast(np.asarray(values[kept]), dst.dtype)
        return
    held = exact(dst).reshape(-1).copy()
    held[kept] = values[kept]
    write(dst, held.reshape(dst.shape))


def _taken(src: NkiTensor) -> Any:
    """The elements of an indirect access; the first of the tensor where an index is out of bounds."""
    assert src.gather is not None
    return src.flat.take(np.maximum(src.gather, 0) if _leaves_out(src) else src.gather)


def _leaves_out(view: NkiTensor) -> bool:
    """Whether some positions of an indirect access are out of bounds."""
    return view.gather is not None and bool(view.gather.size) and bool(view.gather.min() < 0)


def _require_skipping(oob_mode: bounds) -> None:
    """Refuse an index out of bounds, unless such elements are left out.

    Raises:
        OutOfBoundsError: They are not.
    """
    if as_member(bounds, oob_mode) is not bounds.skip:
        raise OutOfBoundsError(
            "an index of an indirect access is out of bounds; use oob_mode=nisa.oob_mode.skip to leave such "
            "elements out",
            tracing.where(),
        )


def _check_bounds(view: NkiTensor, oob_mode: bounds) -> None:
    """Refuse an indirect access out of bounds, unless such elements are left out."""
    if _leaves_out(view):
        _require_skipping(oob_mode)


def copy_transfer(
    trace: Tracer,
    name: str,
    dst: ViewForm,
    src: ViewForm,
    dge_mode: modes,
    engine: engines,
    indirect: bool,
    transpose: bool = False,
) -> Transfer:
    """The DMA of a copy between two forms.

    Raises:
        NkiValidationError: The sizes differ, or a side lies in PSUM.
    """
    if dst.size != src.size:
        raise refuse(
            f"{name} moves as many elements as it reads, but dst has shape {dst.shape} and src {src.shape}"
        )
    wide = max(dst.dtype.itemsize, src.dtype.itemsize)
    made_by, chosen = _MADE_BY[dge_mode], engine.chosen
    if not made_by:
        made_by = "software" if indirect else ("hardware" if trace.core.generation >= 3 else "runtime")
    on_chip, outside = (dst, src) if dst.memory is not Memory.HBM else (src, dst)
    in_hbm = outside.memory is Memory.HBM
    counted = outside.dtype.itemsize if in_hbm else wide
    run = min(dst.run_bytes // dst.dtype.itemsize, src.run_bytes // src.dtype.itemsize) * counted
    return Transfer(
        source_memory=src.memory,
        destination_memory=dst.memory,
        dtype=dst.dtype.chip,
        bytes=src.size * counted,
        descriptor_bytes=max(run, counted),
        partitions=on_chip.partitions if on_chip.memory is not Memory.HBM else 0,
        transpose=transpose,
        strided=in_hbm and outside.run_bytes < outside.size * outside.dtype.itemsize,
        cast=wide // counted if wide > counted else 0,
        descriptors_by=made_by,
        engine=chosen,
        is_open=chosen is None and not indirect and dge_mode is modes.unknown,
    )


_AXES = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def transposed_order(axes: Sequence[int] | None, src: NkiTensor) -> tuple[int, ...]:
    """The axes of a DMA transpose: as given, else with the first and last swapped; () where none fit."""
    return tuple(axes) if axes is not None else _AXES.get(src.ndim, ())


def _check_turned(call: Call, turned: tuple[int, ...]) -> None:
    """Refuse a tile on chip whose partitions are not those of the transposed tensor."""
    dst = call.form("dst")
    if dst.memory is not Memory.HBM and not call.given["src_gathered"] and dst.partitions != turned[0]:
        raise refuse(
            f"dma_transpose of shape {call.form('src').shape} gives {turned}, but dst has shape {dst.shape}"
        )


def _turned(call: Call) -> Kind:
    src, given = call.form("src"), call.given
    if len(given["axes"]) != len(src.shape):
        raise refuse(f"dma_transpose turns tensors of 2 to 4 dimensions, got shape {src.shape}")
    if given["axes"] != _AXES[len(src.shape)]:
        raise refuse(
            f"dma_transpose of shape {src.shape} swaps its first and last dimensions, axes "
            f"{_AXES[len(src.shape)]}, got {given['axes']}; leave axes out"
        )
    _check_turned(call, tuple(src.shape[axis] for axis in given["axes"]))
    return Kind("dma_transpose", transfer=copy_transfer(
        call.trace, "dma_transpose", call.form("dst"), src, given["dge_mode"], engines.unknown,
        given["src_gathered"], transpose=True,
    ))  # fmt: skip


@instruction(Instruction(
    "dma_transpose", None, (), (Operand("dst", BY_DMA, written=True), Operand("src", BY_DMA, gathered=True)),
    key=("dge_mode", "oob_mode", "axes"), derived=(Derived("axes", ("axes", "src"), transposed_order),),
    same_type=(("dst", "src"),), older_in_psum=True, build=_turned,
))  # fmt: skip
def dma_transpose(
    dst: NkiTensor,
    src: NkiTensor,
    axes: Sequence[int] | None = None,
    priority: int | None = None,
    dge_mode: modes = modes.unknown,
    oob_mode: bounds = bounds.error,
    name: str | None = None,
) -> None:
    """dst = src with its first and last dimensions swapped, by the DMA engines.

    Args:
        dst: Tile in SBUF, of the transposed shape.
        src: Tensor in HBM or SBUF of 2 to 4 dimensions; may be indexed indirectly.
        axes: (1, 0), (2, 1, 0) or (3, 1, 2, 0).
        priority: Quality of service.
        dge_mode: Who makes the descriptors.
        oob_mode: What an index out of bounds does.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule is broken.
    """
    _check_bounds(src, oob_mode)
    values = exact(src) if src.gather is None else _taken(src)
    turned = values.transpose(transposed_order(axes, src))
    write(dst, turned if turned.size == dst.size else turned.reshape(-1)[: dst.size])


def dma_compute(
    dst: NkiTensor,
    srcs: Sequence[NkiTensor],
    reduce_op: Any = "add",
    scales: Sequence[float] | None = None,
    unique_indices: bool = True,
    oob_mode: bounds = bounds.error,
    name: str | None = None,
) -> NkiInstruction:
    """dst = sum of the scaled sources, computed in fp32 by the DMA engines.

    Args:
        dst: Tensor in HBM or SBUF; may be indexed indirectly.
        srcs: Up to 16 tensors of as many elements.
        reduce_op: add.
        scales: Factor of each source.
        unique_indices: Whether scattered indices are unique.
        oob_mode: What an index out of bounds does.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule is broken.
    """
    trace = ready()
    if not isinstance(srcs, (list, tuple)) or not 0 < len(srcs) <= 16:
        given = len(srcs) if isinstance(srcs, (list, tuple)) else repr(srcs)
        raise refuse(f"dma_compute takes a list of 1 to 16 sources, got {given}")
    if scales is not None and len(scales) != len(srcs):
        raise refuse(f"dma_compute takes a scale for each source, got {len(scales)} for {len(srcs)}")
    if find_operator(reduce_op).name != "add":
        raise refuse(f"dma_compute adds, but reduce_op is {find_operator(reduce_op).name}; use nl.add")
    require_tensors("dma_compute", dst=dst, **{f"srcs[{at}]": view for at, view in enumerate(srcs)})
    for view in (dst, *srcs):
        form = form_of(view)
        if form is not None and form.memory is Memory.PSUM:
            raise refuse("dma_compute reaches HBM and SBUF, not PSUM; copy the tile first (nisa.tensor_copy)")
    factors = [1.0] * len(srcs) if scales is None else [float(scale) for scale in scales]
    indirect = any(view.gather is not None for view in (dst, *srcs))
    for source in srcs:
        key = (dma_compute, dst.form, source.form, indirect)
        kind = trace.kinds.get(key)
        if kind is None:
            transfer = copy_transfer(trace, "dma_compute", dst.form, source.form, modes.unknown,
                                     engines.unknown, indirect)  # fmt: skip
            kind = trace.add_kind(key, Kind("dma_compute", transfer=transfer))
        issue(trace, kind, dst, source)
        trace.note_name(name)
    if trace.values:
        _sum_sources(dst, srcs, factors, oob_mode)
    return NkiInstruction(trace)


def _sum_sources(
    dst: NkiTensor, srcs: Sequence[NkiTensor], factors: Sequence[float], oob_mode: bounds
) -> None:
    total: Any = None
    for source, factor in zip(srcs, factors):
        _check_bounds(source, oob_mode)
        values = single(source) if source.gather is None else _taken(source).astype(np.float32)
        values = values.reshape(-1) if factor == 1.0 else values.reshape(-1) * np.float32(factor)
        total = values if total is None else total + values
    if dst.gather is not None:
        from neuron_tools.nki.values import cast

        _check_bounds(dst, oob_mode)
        dst.backing.make_own()
        places = dst.gather.reshape(-1)
        kept = places >= 0
        dst.flat[places[kept]] = cast(total[kept], dst.dtype)
        return
    write(dst, total.reshape(dst.shape))
