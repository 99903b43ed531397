"""Input pipeline of an imported trace: how long each step waits for data, and whether the device does too.

The host waits in PyTorch's `DataLoader.__next__` or in TensorFlow's `IteratorGetNext`; what tf.data's threads
do meanwhile (`Iterator::...`) are stages. Copies to the device, and a TPU's infeed, bring the data there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_profile.analysis.spans import Union, gaps, length_ns, overlap_ns, union
from neuron_profile.analysis.time.core_spans import integers
from neuron_profile.analysis.traces.device_spans import DEVICE_SPANS, Kind
from neuron_tools.arrays import Bools
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_WAITS = r"^(enumerate\(DataLoader\)#|IteratorGetNext)"
_STAGES = r"^(enumerate\(DataLoader\)#|IteratorGetNext|Iterator::)"
_HOST = f"""
SELECT span.process_idx AS process, span.name, start_ts, end_ts,
    regexp_matches(span.name, '{_WAITS}') AS waits
FROM TraceSpan span JOIN TraceTrack track
    ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
WHERE track.device_idx IS NULL AND regexp_matches(span.name, '{_STAGES}')
    AND coalesce(category, '') != 'python_function'
ORDER BY span.process_idx, start_ts
"""
_STEPS = """
SELECT span.process_idx AS process, span.name AS step, start_ts, end_ts
FROM TraceSpan span JOIN TraceTrack track
    ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
WHERE {condition} ORDER BY span.process_idx, start_ts, span.id
"""
_OF_HOST = "track.device_idx IS NULL AND starts_with(span.name, 'ProfilerStep#')"
_OF_DEVICE = "track.device_idx = 0 AND track.name = 'Steps'"
_DEVICE = f"""
WITH {DEVICE_SPANS}
SELECT process, start_ts, end_ts, starts_with(name, 'infeed') AS feeds,
    regexp_matches(name, 'HtoD|H2D|HostToDevice') AS copies
FROM device JOIN kinds USING (name, category) WHERE kind != {int(Kind.OTHER)} ORDER BY process, start_ts
"""


@frozen
class InputStep:
    """One step of one process.

    Attributes:
        step: As the trace names it; "" of a trace without steps, which is one.
        input_ns: Time in which the host waited for the next batch.
        copy_ns: Time in which data was copied to a device, or fed in.
        idle_ns: Time in which no device of the process had work.
        starved_ns: Part of it in which the host waited for the next batch, or the device for its infeed.
    """

    process: int
    step: str
    duration_ns: int
    input_ns: int
    copy_ns: int
    idle_ns: int
    starved_ns: int


@frozen
class InputStage:
    """Spans of one name in the input pipeline, all together."""

    process: int
    stage: str
    calls: int
    total_ns: int
    longest_ns: int


@frozen
class InputPipeline:
    """The input of all steps; times are sums over them, stages come by falling time."""

    duration_ns: int
    input_ns: int
    copy_ns: int
    starved_ns: int
    steps: tuple[InputStep, ...]
    stages: tuple[InputStage, ...]


@dataclass(frozen=True)
class _Process:
    """What happened in one process, each as spans that do not overlap."""

    waits: Union
    copies: Union
    feeds: Union
    idle: Union

    def step(self, process: int, name: str, begin: int, end: int) -> InputStep:
        """What of it lies between two moments."""
        idle = _within(self.idle, begin, end)
        waits = _within(self.waits, begin, end)
        return InputStep(
            process, name, end - begin, length_ns(waits),
            length_ns(_within(_joined(self.copies, self.feeds), begin, end)), length_ns(idle),
            overlap_ns(idle, _joined(waits, self.feeds)),
        )  # fmt: skip


def find_input(profile: Profile) -> InputPipeline | None:
    """The input pipeline; None where no wait for data and no infeed is in the trace."""
    host, device = profile.query(_HOST), profile.query(_DEVICE)
    if not host.num_rows and not _true(device, "feeds").any():
        return None
    steps = profile.query(_STEPS.format(condition=_OF_HOST)).to_pylist()
    steps = steps or profile.query(_STEPS.format(condition=_OF_DEVICE)).to_pylist()
    found: list[InputStep] = []
    for process in np.unique(
        np.concatenate([integers(host, "process"), integers(device, "process")])
    ).tolist():
        mine = [row for row in steps if row["process"] == process]
        found += _steps(process, mine, *(_of_process(rows, process) for rows in (host, device)))
    return InputPipeline(
        sum(step.duration_ns for step in found), sum(step.input_ns for step in found),
        sum(step.copy_ns for step in found), sum(step.starved_ns for step in found),
        tuple(found), _stages(host),
    )  # fmt: skip


def _steps(
    process: int, steps: Sequence[dict[str, Any]], host: pa.Table, device: pa.Table
) -> list[InputStep]:
    """The process's steps, or all of it as one; `host` and `device` hold something together."""
    moments = [integers(rows, name) for rows in (host, device) for name in ("start_ts", "end_ts")]
    times = np.concatenate([*moments, [row[name] for row in steps for name in ("start_ts", "end_ts")]])
    begin, end = int(times.min()), int(times.max())
    feeds = _true(device, "feeds")
    busy = _chosen(device, ~feeds)
    idle = gaps((np.array([begin, *busy[0], end]), np.array([begin, *busy[1], end])))
    inside = _Process(
        _chosen(host, _true(host, "waits")), _chosen(device, _true(device, "copies")),
        _chosen(device, feeds), idle,
    )  # fmt: skip
    whole: list[dict[str, Any]] = [{"step": "", "start_ts": begin, "end_ts": end}]
    return [inside.step(process, row["step"], row["start_ts"], row["end_ts"]) for row in steps or whole]


def _stages(rows: pa.Table) -> tuple[InputStage, ...]:
    found: dict[tuple[int, str], list[int]] = {}
    for row in rows.to_pylist():
        found.setdefault((row["process"], row["name"]), []).append(row["end_ts"] - row["start_ts"])
    stages = (InputStage(*key, len(times), sum(times), max(times)) for key, times in found.items())
    return tuple(sorted(stages, key=lambda stage: (-stage.total_ns, stage.process, stage.stage)))


def _joined(one: Union, other: Union) -> Union:
    return union(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))


def _within(spans: Union, begin: int, end: int) -> Union:
    """What of a union lies between two moments."""
    starts, ends = np.clip(spans[0], begin, end), np.clip(spans[1], begin, end)
    kept = ends > starts
    return starts[kept], ends[kept]


def _of_process(rows: pa.Table, process: int) -> pa.Table:
    return rows.filter(pa.array(integers(rows, "process") == process))


def _chosen(rows: pa.Table, mask: Bools) -> Union:
    return union(integers(rows, "start_ts")[mask], integers(rows, "end_ts")[mask])


def _true(rows: pa.Table, name: str) -> Bools:
    values: Bools = rows[name].to_numpy().astype(bool)
    return values
