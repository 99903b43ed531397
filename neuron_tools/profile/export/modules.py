"""Modules around framework operations: path segments that neighbours share become one enclosing slice.

Operations of one NeuronCore may overlap (the next starts before the last one's instructions have drained),
so they are first set on lanes; in each lane operations do not overlap, and modules made from neighbours in
the lane enclose them by construction: each lane is a flame chart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.export.timeline import TEXTS, Slices
from neuron_tools.profile.timeline.depths import DepthAssigner

BACKWARD_SEGMENT = "backward"
MODULE_CATEGORY = "modules"
Path = tuple[str, ...]


@frozen
class Module:
    """A slice around neighbouring operations whose paths begin alike."""

    start_ns: int
    end_ns: int
    path: Path


class ModuleSpans:
    """Adds module slices to the operations of one NeuronCore.

    Modules are closed at the end of each batch and opened anew in the next, which bounds memory at the cost
    of one seam in each module that is open there.
    """

    def __init__(self) -> None:
        self._colouring = DepthAssigner()

    def add(
        self, operations: Slices, layer: pa.Array, backward: npt.NDArray[np.bool_]
    ) -> tuple[Slices, npt.NDArray[np.int32], int]:
        """Takes operations in order of start.

        Args:
            operations: Spans of framework operations.
            layer: Slash-separated module path of each; null or empty = outside all modules.
            backward: Whether it belongs to the backward pass, which gets a slice of its own at the root.

        Returns:
            Slices of modules and operations, in nesting order within each lane; the lane of each; and how
            many of them are modules.
        """
        lanes = self._colouring.assign(operations.start_ns, operations.end_ns)
        codes, paths = _paths(layer, backward)
        modules: list[Module] = []
        module_lanes: list[int] = []
        for lane in np.unique(lanes).tolist():
            rows = np.flatnonzero(lanes == lane)
            found = enclosing_modules(operations.start_ns[rows], operations.end_ns[rows], codes[rows], paths)
            modules += found
            module_lanes += [lane] * len(found)
        depth = np.array([len(path) for path in paths])[codes]
        everything, order = _together(modules, operations, depth)
        return everything, np.concatenate([np.array(module_lanes, np.int32), lanes])[order], len(modules)


def enclosing_modules(
    start_ns: Ints, end_ns: Ints, codes: npt.NDArray[np.int64], paths: list[Path]
) -> list[Module]:
    """Modules of operations that do not overlap, shape (operations,) each; `codes` index `paths`."""
    modules: list[Module] = []
    open_path: Path = ()
    opened_ns: list[int] = []
    changes = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
    for row in changes:
        path = paths[codes[row]]
        shared = _shared(open_path, path)
        modules += _closed(open_path, opened_ns, shared, int(end_ns[row - 1]))
        opened_ns = opened_ns[:shared] + [int(start_ns[row])] * (len(path) - shared)
        open_path = path
    return modules + _closed(open_path, opened_ns, 0, int(end_ns[-1]))


def _closed(path: Path, opened_ns: list[int], keep: int, end_ns: int) -> list[Module]:
    return [Module(opened_ns[depth], end_ns, path[: depth + 1]) for depth in range(keep, len(path))]


def _shared(first: Path, second: Path) -> int:
    pairs = zip(first, second, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _paths(layer: pa.Array, backward: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], list[Path]]:
    """Code of each operation's path, and the paths."""
    encoded = layer.cast(pa.string()).fill_null("").dictionary_encode()
    segments = [tuple(filter(None, text.split("/"))) for text in encoded.dictionary.to_pylist()]
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    paths = segments + [(BACKWARD_SEGMENT, *path) for path in segments]
    return codes + np.where(backward, len(segments), 0), paths


def _together(modules: list[Module], operations: Slices, depth: npt.NDArray[np.int64]) -> tuple[Slices, Ints]:
    """Modules and operations as one batch, outer before inner, and the order that this put them in."""
    start = np.concatenate([np.array([m.start_ns for m in modules], np.int64), operations.start_ns])
    end = np.concatenate([np.array([m.end_ns for m in modules], np.int64), operations.end_ns])
    depths = np.concatenate([np.array([len(m.path) - 1 for m in modules], np.int64), depth])
    count = len(modules)
    arguments = {label: _after_nulls(column, count) for label, column in operations.arguments.items()}
    names = pa.array([m.path[-1] for m in modules], pa.string())
    layers = pa.array(["/" + "/".join(m.path) for m in modules], pa.string())
    own_layers = operations.arguments.get("layer", pa.nulls(len(operations), TEXTS))
    arguments["layer"] = _texts_together(layers, own_layers)
    optional = ("source_file", "source_line", "flow_out", "flow_in")
    columns = {name: getattr(operations, name) for name in optional}
    category = pa.repeat(MODULE_CATEGORY, count)
    everything = Slices(
        start,
        end,
        _texts_together(names, operations.name),
        arguments,
        **{name: _after_nulls(column, count) for name, column in columns.items() if column is not None},
        category=None if operations.category is None else _texts_together(category, operations.category),
    )
    order = np.lexsort((depths, -end, start))
    return everything.take(order), order


def _texts_together(first: pa.Array, second: pa.DictionaryArray) -> pa.DictionaryArray:
    return pa.concat_arrays([first, second.cast(pa.string())]).dictionary_encode()


def _after_nulls(column: pa.Array, count: int) -> pa.Array:
    return pa.concat_arrays([pa.nulls(count, column.type), column])
