"""Modules as spans: the segments of the paths that neighbouring framework operations share.

The published tables name the module of each operation (`layer`), but have no rows for modules. Neighbours
that stand in the same module become one span of it; a module ends at the latest where the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.profile.timeline.scan import Names
from neuron_tools.profile.timeline.segment import Segment

_NONE = -1


class ModuleSpans:
    """Makes the spans of modules of one NeuronCore from its operations, segment after segment.

    A module that is open at a segment's end is closed there and opened anew in the next.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._prefixes: dict[int, list[int]] = {}
        self._numbers: dict[tuple[str, ...], int] = {}
        self._labels: list[int] = []
        self._ended: list[int] = []  # by depth

    def add(self, operations: Segment) -> Iterator[tuple[int, Segment]]:
        """Depth and spans of the modules, for each depth that has any."""
        if operations.layer is None or not len(operations):
            return
        table = self._table(operations.layer)
        end = operations.start_ns + operations.duration_ns
        opening = np.zeros(len(operations), np.bool_)
        opening[0] = True
        limit = np.full(len(operations), np.iinfo(np.int64).max)
        for depth in range(table.shape[1]):
            prefix = table[operations.layer, depth]
            opening[1:] |= prefix[1:] != prefix[:-1]
            rows = np.flatnonzero(opening)
            if not np.any(prefix >= 0):
                return
            spans, limit = self._runs(depth, operations, end, prefix, rows, limit)
            if len(spans):
                yield depth, spans

    def _runs(
        self, depth: int, operations: Segment, end: Ints, prefix: Ints, rows: Ints, limit: Ints
    ) -> tuple[Segment, Ints]:
        """Spans of one depth; and, by operation, when the module around it ends."""
        self._ended += [0] * (depth + 1 - len(self._ended))
        start = np.maximum(operations.start_ns[rows], self._ended[depth])
        latest = np.maximum.reduceat(end, rows)
        latest = np.minimum(latest, limit[rows])
        latest[:-1] = np.minimum(latest[:-1], start[1:])
        latest = np.maximum(latest, start)
        inside = prefix[rows] != _NONE
        if inside.any():
            self._ended[depth] = int(latest[inside][-1])
        labels = np.array(self._labels, np.int32)[prefix[rows][inside]]
        spans = Segment(start[inside], (latest - start)[inside], labels, operations.row[rows][inside])
        return spans, np.repeat(latest, np.diff(np.append(rows, len(end))))

    def _table(self, layer: npt.NDArray[np.int32]) -> Ints:
        """Number of the module at each depth of each path, -1 beyond its end. Shape (names, depths)."""
        for code in np.unique(layer).tolist():
            if code not in self._prefixes:
                self._prefixes[code] = self._path(self._names.texts[code])
        deepest = max(map(len, self._prefixes.values()), default=0)
        table = np.full((max(self._prefixes) + 1, max(deepest, 1)), _NONE, np.int64)
        for code, path in self._prefixes.items():
            table[code, : len(path)] = path
        return table

    def _path(self, text: str) -> list[int]:
        segments = tuple(filter(None, text.split("/")))
        return [self._number(segments[: depth + 1]) for depth in range(len(segments))]

    def _number(self, path: tuple[str, ...]) -> int:
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self._labels)
            self._labels.append(self._names.code(path[-1]))
        return number
