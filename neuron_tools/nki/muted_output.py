"""What a kernel prints in a run that only shows what would be: nothing of it is seen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

from neuron_tools.nki.tracer import running
from neuron_tools.shared_block import SharedBlock


@contextmanager
def _streams() -> Iterator[None]:
    with redirect_stdout(_mute(sys.stdout)), redirect_stderr(_mute(sys.stderr)):
        yield


muted = SharedBlock(_streams)
"""A block in which what kernels print whose traces do not print is left out; other threads go on."""


def _mute(stream: TextIO | None) -> TextIO | None:
    """The stream for kernels that do not print; None where Python has none, as it was closed."""
    return None if stream is None else cast("TextIO", _MutedStream(stream))


class _MutedStream:
    """A stream that takes nothing from kernels that do not print, and is the given one otherwise."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what is not a muted kernel's; returns the length, as streams do."""
        trace = running()
        if trace is not None and not trace.prints:
            return len(text)
        return self._stream.write(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write each of the texts."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
