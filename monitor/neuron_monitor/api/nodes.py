"""A table of sysfs nodes: each is one small text file, read over and over at the least possible cost.

Descriptors stay open and are read again at offset 0, which makes a sysfs node compute its text anew and costs
a tenth of opening the file. What cannot be read keeps its last value and is named among the faults.
"""

from __future__ import annotations

import errno
import os
import resource
from array import array
from collections.abc import Sequence

from neuron_monitor.api import kernels, layout
from neuron_monitor.api.python_kernels import READ_BYTES
from neuron_tools.frozen import frozen

DESCRIPTORS_WANTED = 16384
# Counters are unsigned words of 64 bits.
LARGEST_COUNT = (1 << 64) - 1
CLOSED = -1
READ_ONLY = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
Part = tuple[bytearray, bytearray, bytes, bytes]
"""Nodes of a table, as `kernels.refresh` takes them."""
# A node of which only the text is wanted, in a table of its own: no number that stands there is the last one.
_NO_NUMBER = array("Q", [LARGEST_COUNT]).tobytes()
_ZERO_AT_MOST = array("Q", [0]).tobytes()
_FIRST = array("i", [0]).tobytes()


@frozen
class Fault:
    """Something that could not be read: which node, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def read_text(path: str, limit: int = 4096) -> str:
    """The text of one node, opened anew; undecodable bytes become U+FFFD.

    Raises:
        OSError: It cannot be read.
    """
    descriptor = os.open(path, READ_ONLY)
    try:
        return os.read(descriptor, limit).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def first_line(path: str) -> str:
    """The first line of a file of the system; "" where there is none."""
    try:
        return read_text(path).partition("\n")[0].strip()
    except OSError:
        return ""


class NodeTable:
    """Numeric nodes in columns: path, descriptor, last value, last fault.

    Args:
        paths: Of the nodes.
        limits: Largest value that each can have; without, what fits into an unsigned word. What is beyond, or
            below 0, is a fault, and the node keeps its last value.
        words: What stood there before, as `layout.packed` packs it; without, 0.

    Attributes:
        values: Last value of each node.
        words: The same as bytes.
        faults: Reason for which a node could not be read the last time, by its position.
    """

    def __init__(
        self,
        paths: Sequence[str],
        limits: Sequence[int] | None = None,
        words: bytes | None = None,
    ) -> None:
        count = len(paths)
        self.paths = list(paths)
        self.words = bytearray(layout.WORD_BYTES * count if words is None else words)
        self.values = memoryview(self.words).cast("Q")
        self._limits = array("Q", limits if limits is not None else [LARGEST_COUNT] * count).tobytes()
        self.faults: dict[int, str] = {}
        self._garbage: dict[int, bytes] = {}
        self._opened = bytearray(array("i", [CLOSED] * count))
        self._descriptors = memoryview(self._opened).cast("i")
        self._keep_open = True
        self._flags = READ_ONLY | getattr(os, "O_NOATIME", 0)

    def read(self, positions: list[int]) -> list[int]:
        """Read nodes anew.

        Returns:
            Positions whose value changed.
        """
        ((changed, others),) = kernels.refresh([self.part(array("i", positions).tobytes())])
        if others:
            changed += self.take(others)
            changed.sort()
        return changed

    def part(self, positions: bytes) -> Part:
        """What `kernels.refresh` needs to read nodes, whose positions are 32-bit integers."""
        return self._opened, self.words, self._limits, positions

    def take(self, others: list[tuple[int, bytes | None]]) -> list[int]:
        """Take what `kernels.refresh` leaves to its caller: the positions whose value changed."""
        return [position for position, text in others if self._take(position, text)]

    def _take(self, position: int, read: bytes | None) -> bool:
        """Take what is no plain number; whether the node's value is another now."""
        text = self._read_after_failure(position) if read is None else read
        value = kernels.parse_count(text)
        if value is None or not 0 <= value <= memoryview(self._limits).cast("Q")[position]:
            self._keep_fault(position, text)
            self._close(position)  # Another node may stand there the next time.
            self._garbage[position] = text
            return False
        self.faults.pop(position, None)
        self._garbage.pop(position, None)
        is_new = value != self.values[position]
        self.values[position] = value
        return is_new

    def close(self) -> None:
        """Close every descriptor; the table can still be read, it opens them again."""
        for position in range(len(self._descriptors)):
            self._close(position)

    def close_removed(self) -> None:
        """Close the nodes that somebody removed: what stands there by now is another file."""
        for position in kernels.removed(self._descriptors.tolist()):
            self._close(position)

    def _close(self, position: int) -> None:
        if self._descriptors[position] != CLOSED:
            os.close(self._descriptors[position])
            self._descriptors[position] = CLOSED

    def fault_list(self) -> list[Fault]:
        """What could not be read the last time it was tried."""
        return [Fault(self.paths[position], reason) for position, reason in self.faults.items()]

    def _keep_fault(self, position: int, text: bytes) -> None:
        if text != self._garbage.get(position) and (text or position not in self.faults):
            self.faults[position] = _describe_garbage(text)

    def _read_after_failure(self, position: int) -> bytes:
        """Open a node, for the first time or because its descriptor does not serve any more."""
        self._close(position)
        try:
            descriptor = self._open(self.paths[position])
        except OSError as error:
            self.faults[position] = describe_os_error(error)
            return b""
        try:
            text = os.pread(descriptor, READ_BYTES, 0)
        except OSError as error:
            os.close(descriptor)
            self.faults[position] = describe_os_error(error)
            return b""
        if self._keep_open:
            self._descriptors[position] = descriptor
        else:
            os.close(descriptor)
        if not text:
            self.faults[position] = _describe_garbage(text)
        return text

    def _open(self, path: str) -> int:
        try:
            return os.open(path, self._flags)
        except OSError as error:
            if error.errno == errno.EPERM and self._flags != READ_ONLY:
                self._flags = READ_ONLY  # Only a file's owner may read it without a trace of when.
            elif error.errno == errno.EMFILE:
                # The limit is low: from now on this table opens each node for each read.
                self._keep_open = False
                self.close()
            else:
                raise
        return os.open(path, self._flags)


class TextNode:
    """One node whose text is no number; it stays open, as those of a table do."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = CLOSED
        self._opened, self._word = bytearray(array("i", [CLOSED])), bytearray(_NO_NUMBER)

    @property
    def is_open(self) -> bool:
        """Whether it can be read as a `part`."""
        return self._descriptor != CLOSED

    def part(self) -> Part:
        """What `kernels.refresh` needs to read its text."""
        self._opened[:] = array("i", [self._descriptor]).tobytes()
        self._word[:] = _NO_NUMBER
        return self._opened, self._word, _ZERO_AT_MOST, _FIRST

    def text_of(self, outcome: tuple[list[int], list[tuple[int, bytes | None]]]) -> bytes | None:
        """The text that `kernels.refresh` read of its `part`; None where it failed, or read less than all."""
        text = outcome[1][0][1] if outcome[1] else b"0"
        return None if text is None or len(text) >= READ_BYTES else text

    def read(self, limit: int = 256) -> bytes:
        """Its text now.

        Raises:
            OSError: It cannot be read.
        """
        if self._descriptor != CLOSED:
            try:
                return os.pread(self._descriptor, limit, 0)
            except OSError:
                self.close()
        self._descriptor = os.open(self.path, READ_ONLY)
        return os.pread(self._descriptor, limit, 0)

    def close(self) -> None:
        """Close the descriptor; reading opens it again."""
        if self._descriptor != CLOSED:
            os.close(self._descriptor)
            self._descriptor = CLOSED


def describe_os_error(error: OSError) -> str:
    """A short reason, e.g. "no such file or directory"."""
    if error.errno == errno.ENODEV:
        return "the device is gone"
    return (error.strerror or str(error)).lower()


def _describe_garbage(text: bytes) -> str:
    if not text.strip():
        return "empty"
    if kernels.parse_count(text) is not None:
        return f"out of range: {text[:24].split()[0].decode('ascii', 'replace')}"
    return f"not a number: {text[:24]!r}"


def raise_descriptor_limit() -> None:
    """Let this process keep as many descriptors as its hard limit allows, up to what 16 devices need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(DESCRIPTORS_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
