"""Movement between partitions on the Vector engine, and quantization to MX types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_tools.nki.isa.issue import (
    refuse,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import SBUF, Call, Derived, Instruction, Operand
from neuron_tools.nki.microscaling import quantized, scale_partitions
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import exact, single, write
from neuron_tools.records.program import Engine, Opcode

QUADRANT = 32
"""Partitions within which a shuffle moves data."""
KEEP = 255
"""Mask entry of an output partition that stays as it is."""


def _check_shuffle(call: Call) -> None:
    dst, src, mask = call.form("dst"), call.form("src"), call.given["shuffle_mask"]
    if dst.elements != src.elements or dst.dtype.itemsize != src.dtype.itemsize:
        raise refuse(
            f"nc_stream_shuffle needs one type and as many elements per partition, got {src.shape} of "
            f"{src.dtype} and {dst.shape} of {dst.dtype}"
        )
    if len(mask) != QUADRANT:
        raise refuse(f"nc_stream_shuffle takes a mask of {QUADRANT} entries, got {len(mask)}")
    outside = [entry for entry in mask if not 0 <= entry < QUADRANT and entry != KEEP]
    if outside:
        raise refuse(
            f"nc_stream_shuffle: mask entry {outside[0]} is none of the {QUADRANT} partitions of a quadrant; "
            f"{KEEP} keeps the destination"
        )


@instruction(Instruction(
    "nc_stream_shuffle", Opcode.STREAM_SHUFFLE, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("src")),
    key=("shuffle_mask",), derived=(Derived("shuffle_mask", ("shuffle_mask",), tuple),), rule=_check_shuffle,
))  # fmt: skip
def nc_stream_shuffle(
    dst: NkiTensor, src: NkiTensor, shuffle_mask: Sequence[int], name: str | None = None
) -> None:
    """dst[i] = src[shuffle_mask[i]] between the partitions of each quadrant of 32.

    Args:
        dst: (P, ...) tile, type of `src`.
        src: (P', ...) tile of as many elements per partition.
        shuffle_mask: 32 source partitions of a quadrant; 255 keeps the destination.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
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


def _check_groups(call: Call) -> None:
    dst, src = call.form("dst"), call.form("src")
    if src.partitions % 32 or src.elements % 4 or dst.dtype.packed != 4:
        raise refuse(
            f"quantize_mx needs a multiple of 32 partitions and of 4 elements and a packed dst, got "
            f"{src.shape} to {dst.dtype}"
        )


@instruction(Instruction(
    "quantize_mx", Opcode.TENSOR_COPY, (Engine.VECTOR,),
    (Operand("dst", SBUF, written=True), Operand("src", SBUF), Operand("dst_scale", SBUF, written=True)),
    since=4, rule=_check_groups,
))  # fmt: skip
def quantize_mx(dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor, name: str | None = None) -> None:
    """Quantize groups of 8 partitions x 4 elements to MX types with one shared exponent each.

    Args:
        dst: (P, F / 4) tile of a type packed by four.
        src: (P, F) fp16 or bf16 tile, P a multiple of 32, F a multiple of 4.
        dst_scale: uint8 exponents (bias 127): (P, F / 4) with a group's exponent at the partitions
            described in `neuron_tools.nki.microscaling`.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule is broken, or the core is older than NeuronCore-v4.
    """
    packed, scales = quantized(single(src).reshape(src.form.partitions, -1), dst.dtype)
    write(dst, packed)
    rows = dst_scale.form.partitions
    held = exact(dst_scale).reshape(rows, -1).copy()
    places = scale_partitions(src.form.partitions, rows)
    held[places, : scales.shape[1]] = scales
    write(dst_scale, held)
