"""The tree of layers: slash-separated paths, each with all paths above it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

ROOT = "/"


@dataclass
class LayerTree:
    """Nodes by number; a parent's number is smaller than its children's.

    Attributes:
        paths: "/" for the root, then "/model", "/model/layers", ...
        parents: Number of each node's parent; -1 for the root.
        depths: Steps from the root.
    """

    paths: list[str] = field(default_factory=lambda: [ROOT])
    parents: list[int] = field(default_factory=lambda: [-1])
    depths: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        self._numbers = {path: number for number, path in enumerate(self.paths)}

    def __len__(self) -> int:
        return len(self.paths)

    def number(self, layer: str) -> int:
        """Node of a layer; made with all that lies above it on first sight.

        Paths are taken leniently: leading, trailing and doubled slashes make no difference.
        """
        node = 0
        path = ""
        for part in layer.split("/"):
            if part:
                path = f"{path}/{part}"
                node = self._child(node, path)
        return node

    def children(self) -> list[list[int]]:
        """Numbers of each node's children, in order of appearance."""
        below: list[list[int]] = [[] for _ in self.paths]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                below[parent].append(node)
        return below

    def _child(self, parent: int, path: str) -> int:
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self.paths)
            self.paths.append(path)
            self.parents.append(parent)
            self.depths.append(self.depths[parent] + 1)
        return number


def layer_tree(layers: Iterable[str]) -> LayerTree:
    """The tree of these layers, nodes in the order of their paths."""
    tree = LayerTree()
    for layer in sorted(layers, key=lambda text: [_natural(part) for part in text.split("/")]):
        tree.number(layer)
    return tree


def _natural(part: str) -> tuple[int, int, str]:
    """Sorts layer 2 before layer 10."""
    return (0, int(part), "") if part.isdecimal() else (1, 0, part)
