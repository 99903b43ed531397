"""Compiled parts of `wire`: base-128 numbers, and pieces of rows copied to their places."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Bools, Bytes, Ints
from neuron_tools.compiled import compiled


@compiled
def encode_varints(values: npt.NDArray[np.uint64], data: Bytes, lengths: Ints) -> None:
    """Base-128 numbers; `data`, uint8, shape (rows, width), is wide enough for the largest."""
    for row in range(len(values)):
        rest = values[row]
        count = 0
        while rest > np.uint64(0x7F):
            data[row, count] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
            rest >>= np.uint64(7)
            count += 1
        data[row, count] = np.uint8(rest)
        lengths[row] = count + 1


@compiled
def put_constant(out: Bytes, places: Ints, data: Bytes, present: Bools) -> None:
    """Copies the same bytes to each row's place in `out`, and moves the places behind them.

    Args:
        present: bool, shape (rows,): rows that have the piece; empty = all.
    """
    width = len(data)
    for row in range(len(places)):
        if len(present) and not present[row]:
            continue
        place = places[row]
        for step in range(width):
            out[place + step] = data[step]
        places[row] = place + width


@compiled
def put_rows(out: Bytes, places: Ints, data: Bytes, lengths: Ints, present: Bools) -> None:
    """Copies each row's bytes to its place in `out`, and moves the places behind them.

    Args:
        data: uint8, shape (rows, width).
        lengths: int64, shape (rows,): how many bytes of each row; empty = all.
        present: bool, shape (rows,): rows that have the piece; empty = all.
    """
    for row in range(len(places)):
        if len(present) and not present[row]:
            continue
        width = lengths[row] if len(lengths) else data.shape[1]
        place = places[row]
        for step in range(width):
            out[place + step] = data[row, step]
        places[row] = place + width
