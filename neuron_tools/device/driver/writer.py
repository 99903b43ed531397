"""Writes nodes in place: only those that changed, through files that stay open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import zip_longest

from neuron_tools.device.driver.nodes import NODE_FILES, Node


class NodeWriter:
    """Remembers what stands in each node that it wrote. Not to be shared by threads."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._descriptors: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self._nodes: dict[str, tuple[int, ...]] = {}
        self._tables: dict[str, Sequence[Node]] = {}

    def write_table(self, folder: str, paths: Sequence[str], nodes: Sequence[Node]) -> None:
        """Writes counters below a folder; those that changed are found by comparing whole counters.

        Raises:
            OSError: A node is gone, or the disk is full.
        """
        before = self._tables.pop(folder, ())
        for path, node, known in zip_longest(paths, nodes, before):
            if node != known:
                self.write_node(f"{folder}/{path}", node)
        self._tables[folder] = nodes

    def write_node(self, path: str, node: Node) -> None:
        """Writes the files of a counter.

        Raises:
            OSError: The node is gone, or the disk is full.
        """
        values = node.values()
        self.write_counter(path, values, NODE_FILES[: len(values)])

    def write_counter(self, path: str, files: tuple[int, ...], names: tuple[str, ...]) -> None:
        """Writes the files of one counter; most counters never change, so they are compared as a whole.

        Raises:
            OSError: The node is gone, or the disk is full.
        """
        if self._nodes.get(path) == files:
            return
        for name, value in zip(names, files):
            self.write_number(f"{path}/{name}", value)
        self._nodes[path] = files

    def write_number(self, path: str, value: int) -> None:
        """Writes a decimal number and a line end.

        Raises:
            OSError: The node is gone, or the disk is full.
        """
        if self._numbers.get(path) != value:
            self._put(path, b"%d\n" % value)
            self._numbers[path] = value

    def write(self, path: str, text: str) -> None:
        """Writes a text.

        Raises:
            OSError: The node is gone, or the disk is full.
        """
        if self._texts.get(path) != text:
            self._put(path, text.encode())
            self._texts[path] = text

    def forget(self, folder: str) -> None:
        """Closes what is open below a folder that is not what it was."""
        for path in [path for path in self._descriptors if path.startswith(folder)]:
            os.close(self._descriptors.pop(path))
            self._numbers.pop(path, None)
            self._texts.pop(path, None)
            self._lengths.pop(path, None)
        for path in [path for path in self._nodes if path.startswith(folder)]:
            del self._nodes[path]
        for path in [path for path in self._tables if path.startswith(folder) or folder.startswith(path)]:
            del self._tables[path]

    def close(self) -> None:
        """Closes all files."""
        self.forget("")

    def _put(self, path: str, data: bytes) -> None:
        descriptor = self._descriptors.get(path)
        if descriptor is None:
            descriptor = self._descriptors[path] = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            self._lengths[path] = os.fstat(descriptor).st_size
        os.pwrite(descriptor, data, 0)
        if len(data) < self._lengths[path]:
            os.ftruncate(descriptor, len(data))
        self._lengths[path] = len(data)
