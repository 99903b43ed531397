"""Interned texts of Perfetto traces: numbers that mean a text on one sequence until its state is cleared."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints

IID_BITS = 32
LARGEST_KEPT = 1 << 18


class Epochs:
    """Numbers the stretches of each sequence between two clearings of its state."""

    def __init__(self) -> None:
        self._current: dict[int, int] = {}
        self._next = 1

    def of(self, sequence: Ints, is_cleared: np.ndarray) -> Ints:
        """Stretch of each packet, int64, shape (packets,): ascending numbers, never used twice."""
        order = np.argsort(sequence, kind="stable")
        ordered = sequence[order]
        is_first = np.append(True, ordered[1:] != ordered[:-1]) if len(order) else np.zeros(0, np.bool_)
        number = np.where(is_cleared[order], self._next + np.arange(len(order)), 0)
        self._next += len(order)
        for place in np.flatnonzero(is_first & (number == 0)).tolist():
            own = int(ordered[place])
            if own not in self._current:
                self._current[own] = self._next
                self._next += 1
            number[place] = self._current[own]
        group = np.cumsum(is_first) - 1
        filled = _filled_forward(number, group)
        for place in np.flatnonzero(np.append(is_first[1:], True) if len(order) else is_first).tolist():
            self._current[int(ordered[place])] = int(filled[place])
        epochs = np.empty(len(order), np.int64)
        epochs[order] = filled
        return epochs

    def current(self) -> Ints:
        """The stretches that are still going on, ascending."""
        return np.array(sorted(self._current.values()), np.int64)


def _filled_forward(number: Ints, group: Ints) -> Ints:
    """Each 0 replaced by the last other number before it in its group; each group starts with one."""
    place = np.maximum.accumulate(np.where(number > 0, np.arange(len(number)), 0))
    return number[place]


class InternedTexts:
    """Definitions of one kind, and what they mean to the events that use them."""

    def __init__(self) -> None:
        self._keys: Ints = np.zeros(0, np.int64)
        self._values: pa.Array = pa.array([], pa.string())

    def define(self, epoch: Ints, iid: Ints, texts: pa.Array) -> None:
        """Adds definitions; one that is given again replaces the one before."""
        if not len(epoch):
            return
        keys = np.concatenate([self._keys, _key(epoch, iid)])
        values = pa.concat_arrays([self._values, texts])
        order = np.argsort(keys, kind="stable")
        last = np.append(keys[order][1:] != keys[order][:-1], True)
        self._keys = keys[order][last]
        self._values = values.take(pa.array(order[last]))

    def forget(self, current: Ints) -> None:
        """Drops definitions of stretches that have ended, where there are many."""
        if len(self._keys) > LARGEST_KEPT:
            kept = np.flatnonzero(np.isin(self._keys >> IID_BITS, current))
            self._keys, self._values = self._keys[kept], self._values.take(pa.array(kept))

    def look_up(self, epoch: Ints, iid: Ints) -> pa.Array:
        """Texts of some numbers; null where a number is 0 or was never defined."""
        if not len(self._keys):
            return pa.nulls(len(iid), pa.string())
        keys = _key(epoch, iid)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known = (self._keys[place] == keys) & (iid != 0)
        return self._values.take(pa.array(place, mask=~known))


def _key(epoch: Ints, iid: Ints) -> Ints:
    return epoch << IID_BITS | (iid & ((1 << IID_BITS) - 1))
