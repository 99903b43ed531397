"""The rows of `HostSample`: samples on the capture's clock, with what each thread was doing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints, Table
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.host_samples.kinds import Activity, activity_of
from neuron_tools.capture.host_samples.leading import leads
from neuron_tools.capture.host_samples.main_calls import CallPlaces
from neuron_tools.capture.host_samples.reading import ProcessSamples, SampledStack, read_samples
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.records.host_samples import INTERVAL_NS, SampleKind
from neuron_tools.records.program import Frame

LONG_NS = 2 * INTERVAL_NS
"""A sample of more time came late: another thread kept Python's lock, or the machine was busy."""
_PACKAGE = os.path.join(str(Path(__file__).resolve().parents[2]), "")
_STARTER = "/threading.py"
_COLLECTION = Activity("garbage_collection")
# What makes very many objects has them collected: that is its own time.
_WITHOUT_OBJECTS = ("python", "garbage_collection", "lock", "sleep", "copy", "optimizer")


def host_sample_rows(
    directory: Path, process_idx: int, offset_ns: int, stacks: StackRegistry, calls: CallPlaces
) -> list[dict[str, Any]]:
    """Blocks of rows, one for the process and each child that it forked.

    A sample stands for the time since the one before. Where that is long, as the sampler was kept waiting, it
    begins with the last call of the device from elsewhere: of the time before that nothing is known.

    Args:
        directory: The process's log.
        offset_ns: From its own clock to the capture's.
        stacks: Numbers the stacks.
        calls: When the process's main thread called the device.
    """
    processes = read_samples(directory)
    blocks = []
    for samples in processes:
        records = _on_clock(samples.records, processes[0].records if samples.worker else None, offset_ns)
        if not samples.worker:
            records = _from_last_call(records, samples, calls)
        records = _around_collections(records)
        records = records[records["end_ns"] > records["start_ns"]]
        records = records[~np.isin(records["stack"], _own_threads(samples))]
        if len(records):
            blocks.append(_rows(samples, records, process_idx, stacks))
    return blocks


def _own_threads(samples: ProcessSamples) -> list[int]:
    """Stacks of threads that this package runs beside the program."""
    own = []
    for number, stack in samples.stacks.items():
        begun = next((frame.file for frame in reversed(stack.frames) if _STARTER not in frame.file), "")
        if begun.startswith(_PACKAGE):
            own.append(number)
    return own


def _on_clock(records: Table, parent: Table | None, offset_ns: int) -> Table:
    """Samples with virtual times of the capture; a child's are those of its parent at the same wall time."""
    moved: Table = records.copy()
    for side in ("start", "end"):
        own = records[f"{side}_ns"]
        if parent is not None:
            wall = np.concatenate([parent["wall_start_ns"][:1], parent["wall_end_ns"]])
            virtual = np.concatenate([parent["start_ns"][:1], parent["end_ns"]])
            order = np.argsort(wall, kind="stable")
            own = np.interp(records[f"wall_{side}_ns"], wall[order], virtual[order]).astype(np.int64)
        moved[f"{side}_ns"] = np.maximum(own + offset_ns, 0)
    return moved


def _from_last_call(records: Table, samples: ProcessSamples, calls: CallPlaces) -> Table:
    """Long samples of the main thread from its last call from elsewhere on."""
    is_thread = records["main"].astype(bool) & (records["kind"] == int(SampleKind.THREAD))
    late = np.flatnonzero(is_thread & (records["end_ns"] - records["start_ns"] > LONG_NS))
    places = [
        {(frame.file, frame.line) for frame in samples.stacks[int(number)].frames}
        for number in records["stack"][late]
    ]
    begun = calls.from_elsewhere(records["end_ns"][late], places)
    moved: Table = records.copy()
    moved["start_ns"][late] = np.maximum(records["start_ns"][late], begun)
    return moved


def _around_collections(records: Table) -> Table:
    """The samples of each thread without the time in which it collected garbage: that has rows of its own."""
    is_collection = records["kind"] == int(SampleKind.COLLECTION)
    collections = records[is_collection]
    parts = [collections]
    for thread in np.unique(records["thread"]):
        here = collections[collections["thread"] == thread]
        spans = np.sort(here["start_ns"]), np.sort(here["end_ns"])
        parts.append(_outside(records[~is_collection & (records["thread"] == thread)], spans))
    return np.concatenate(parts)


def _outside(records: Table, spans: tuple[Ints, Ints]) -> Table:
    """What of each record lies outside of spans, in as many records as that takes."""
    starts, ends = spans
    first = np.searchsorted(ends, records["start_ns"], side="right")
    inside = np.maximum(np.searchsorted(starts, records["end_ns"]) - first, 0)
    of = np.repeat(np.arange(len(records)), inside + 1)
    pieces: Table = records[of]
    number = np.arange(len(of)) - np.repeat(np.cumsum(inside + 1) - inside - 1, inside + 1)
    begins, ended = number > 0, number < inside[of]
    span = first[of] + number
    pieces["start_ns"][begins] = ends[span[begins] - 1]
    pieces["end_ns"][ended] = starts[span[ended]]
    return pieces


def _rows(samples: ProcessSamples, records: Table, process_idx: int, stacks: StackRegistry) -> dict[str, Any]:
    keys = np.stack([records["stack"], records["blocked"], records["kind"]], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.ravel()
    chosen = [samples.stacks[int(stack)] for stack, _, _ in distinct]
    activities = [
        _activity(stack, bool(blocked), kind) for stack, (_, blocked, kind) in zip(chosen, distinct)
    ]
    shown = [_shown(stack) for stack in chosen]
    pools = TextPools()
    texts = {
        "kind": _codes(pools, "kind", [activity.kind for activity in activities], which),
        "detail": _codes(pools, "detail", [activity.detail or None for activity in activities], which),
        "source_file": _codes(
            pools, "source_file", [stack[0].file if stack else None for stack in shown], which
        ),
        "stack_frame_ids": _codes(
            pools, "stack_frame_ids", [stacks.leaf(stack) or None for stack in shown], which
        ),
    }
    lines = np.array([stack[0].line if stack else 0 for stack in shown], np.int32)
    leading = (
        leads(records, which, activities, chosen) if not samples.worker else np.zeros(len(records), bool)
    )
    numbers = {
        "start_ts": records["start_ns"],
        "end_ts": records["end_ns"],
        "duration_ns": records["end_ns"] - records["start_ns"],
        "process_idx": np.full(len(records), process_idx, np.int32),
        "worker_idx": np.full(len(records), samples.worker, np.int32),
        "thread_idx": records["thread"].astype(np.int32),
        "source_line": lines[which],
        "is_leading": leading,
    }
    return pools.table(numbers, texts)


def _codes(pools: TextPools, column: str, texts: Sequence[str | None], which: npt.NDArray[np.intp]) -> Any:
    return pools[column].codes(texts)[which]


def _activity(stack: SampledStack, blocked: bool, kind: int) -> Activity:
    found = activity_of(stack, blocked)
    if kind == SampleKind.COLLECTION and found.kind in _WITHOUT_OBJECTS:
        return _COLLECTION
    return found


def _shown(stack: SampledStack) -> tuple[Frame, ...]:
    """The frames without this package's own and those of starting the program, unless there are no others."""
    kept = tuple(
        frame
        for frame in stack.frames
        if not frame.file.startswith(_PACKAGE) and frame.file[:8] != "<frozen "
    )
    return kept or stack.frames
