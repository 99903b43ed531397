"""Reads the samples of a captured process and of the children that it forked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.capture.text import storable
from neuron_tools.frozen import frozen
from neuron_tools.records.host_samples import SAMPLE_DTYPE, SAMPLES_FILE, STACKS_FILE
from neuron_tools.records.program import Frame


@frozen
class SampledStack:
    """What a sampled thread was doing.

    Attributes:
        frames: Innermost first.
        span: First and last line, first and last column of what the innermost frame evaluates; zeros where
            not known.
        operation: Name of the bytecode that it had come to; "" where not known.
    """

    frames: tuple[Frame, ...]
    span: tuple[int, int, int, int] = (0, 0, 0, 0)
    operation: str = ""

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> SampledStack:
        """The stack that a line tells.

        Raises:
            ValueError, KeyError, TypeError: The line is not what is asked for.
        """
        first, last, left, right = (int(number) for number in line["span"])
        frames = tuple(_frame(*frame) for frame in line["frames"])
        return cls(frames, (first, last, left, right), str(line["op"]))


@lru_cache(maxsize=1 << 14)
def _frame(file: str, number: int, function: str) -> Frame:
    """A frame, once for all stacks that it is in."""
    return Frame(storable(file), int(number), storable(function))


@frozen
class ProcessSamples:
    """The samples of one process.

    Attributes:
        worker: 0 for the captured process itself; its forked children from 1, by process number.
        records: Of `SAMPLE_DTYPE`, in the order in which they were made.
        stacks: What their numbers stand for.
    """

    worker: int
    records: npt.NDArray[np.void]
    stacks: Mapping[int, SampledStack]


def read_samples(directory: Path) -> list[ProcessSamples]:
    """All samples below a process's log, its own first; empty where there are none of its own."""
    own = directory / SAMPLES_FILE
    if not own.exists():
        return []
    stem = SAMPLES_FILE.partition(".")[0]
    children = sorted(directory.glob(f"{stem}-*.bin"), key=_number)
    return [_read(path, worker) for worker, path in enumerate((own, *children))]


def _number(path: Path) -> int:
    text = path.stem.rpartition("-")[2]
    return int(text) if text.isdecimal() else 0


def _read(path: Path, worker: int) -> ProcessSamples:
    data = path.read_bytes()
    whole = len(data) // SAMPLE_DTYPE.itemsize * SAMPLE_DTYPE.itemsize
    records = np.frombuffer(data[:whole], SAMPLE_DTYPE)
    stacks = dict(_stacks(path.with_suffix(Path(STACKS_FILE).suffix)))
    known = np.isin(records["stack"], np.fromiter(stacks, np.int64, len(stacks)))
    sound = known & (records["start_ns"] <= records["end_ns"])
    return ProcessSamples(worker, records[sound], stacks)


def _stacks(path: Path) -> Iterator[tuple[int, SampledStack]]:
    if not path.exists():
        return
    for text in path.read_bytes().splitlines():
        try:
            line = json.loads(text)
            yield int(line["id"]), SampledStack.from_line(line)
        except (ValueError, KeyError, TypeError):
            continue  # a killed process may leave half a line
