"""Movement between partitions on the Vector engine, and quantization to MX types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_memory,
    require_on_chip,
)
from neuron_tools.nki.microscaling import quantized
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import exact, single, write
from neuron_tools.records.program import Engine, Memory, Opcode

QUADRANT = 32
"""Partitions within which a shuffle moves data."""
KEEP = 255
"""Mask entry of an output partition that stays as it is."""


def nc_stream_shuffle(
    dst: NkiTensor, src: NkiTensor, shuffle_mask: Sequence[int], name: str | None = None
) -> NkiInstruction:
    """dst[i] = src[shuffle_mask[i]] between the partitions of each quadrant of 32.

    Args:
        dst: (P, ...) tile, type of `src`.
        src: (P', ...) tile of as many elements per partition.
        shuffle_mask: 32 source partitions of a quadrant; 255 keeps the destination.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(src)
    key = (nc_stream_shuffle, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("nc_stream_shuffle", dst=forms[0], src=forms[1])
        if dst.form.elements != src.form.elements or dst.dtype.itemsize != src.dtype.itemsize:
            raise refuse(
                f"nc_stream_shuffle needs one type and as many elements per partition, got {src.shape} of "
                f"{src.dtype} and {dst.shape} of {dst.dtype}"
            )
        if len(shuffle_mask) != QUADRANT:
            raise refuse(f"nc_stream_shuffle takes a mask of {QUADRANT} entries, got {len(shuffle_mask)}")
        step = compute_step(Engine.VECTOR, Opcode.STREAM_SHUFFLE, dst.form, src.form)
        kind = trace.add_kind(key, Kind("nc_stream_shuffle", (step,)))
    issue(trace, kind, dst, src)
    if trace.values:
        values = exact(src).reshape(src.form.partitions, -1)
        result = exact(dst).reshape(dst.form.partitions, -1).copy()
        target = np.arange(len(result))
        chosen = np.asarray([int(entry) for entry in shuffle_mask], np.int64)[target % QUADRANT]
        source = target // QUADRANT * QUADRANT + chosen
        if len(values) <= QUADRANT:
            source = chosen
        moved = (chosen != KEEP) & (source < len(values))
        result[moved] = values[source[moved]]
        write(dst, result)
    return NkiInstruction(trace)


def quantize_mx(
    dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor, name: str | None = None
) -> NkiInstruction:
    """Quantize groups of 8 partitions x 4 elements to MX types with one shared exponent each.

    Args:
        dst: (P, F / 4) tile of a type packed by four.
        src: (P, F) fp16 or bf16 tile, P a multiple of 32, F a multiple of 4.
        dst_scale: uint8 exponents (bias 127): (P, F / 4) with a group's exponent at the partitions
            described in `neuron_tools.nki.microscaling`.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule is broken, or the core is older than NeuronCore-v4.
    """
    trace = ready()
    forms = form_of(dst), form_of(src), form_of(dst_scale)
    key = (quantize_mx, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        if trace.core.generation < 4:
            raise refuse(f"quantize_mx needs NeuronCore-v4 or newer, the target is {trace.core.name}")
        require_memory("quantize_mx", Memory.SBUF, dst=forms[0], src=forms[1], dst_scale=forms[2])
        if src.form.partitions % 32 or src.form.elements % 4 or dst.dtype.packed != 4:
            raise refuse(
                f"quantize_mx needs a multiple of 32 partitions and of 4 elements and a packed dst, got "
                f"{src.shape} to {dst.dtype}"
            )
        step = compute_step(Engine.VECTOR, Opcode.TENSOR_COPY, dst.form, src.form)
        kind = trace.add_kind(key, Kind("quantize_mx", (step,)))
    issue(trace, kind, dst, src, second=dst_scale)
    if trace.values:
        packed, scales = quantized(single(src).reshape(src.form.partitions, -1), dst.dtype)
        write(dst, packed)
        rows = dst_scale.form.partitions
        held = exact(dst_scale).reshape(rows, -1).copy()
        from neuron_tools.nki.microscaling import scale_partitions

        places = scale_partitions(src.form.partitions, rows)
        held[places, : scales.shape[1]] = scales
        write(dst_scale, held)
    return NkiInstruction(trace)
