"""Counters of a rocpd database: what the hardware counted in a kernel, and what was sampled on the way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Floats, Ints
from neuron_tools.profile.importers.distinct import distinct_rows
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.rocpd_session import Session


class RocpdCounters:
    """The counted values, by event: those of one counter's instances in one event are added up.

    Args:
        session: Has the tables.
        lanes: Gives the counters.
        recording: Receives the samples.
    """

    def __init__(self, session: Session, lanes: Lanes, recording: Recording) -> None:
        self._lanes = lanes
        self._recording = recording
        self._session = session
        self._events, self._counters, self._values = _sums(session)
        self._is_told = np.zeros(len(self._events), bool)
        self._about = _descriptions(session)

    def stage(
        self, events: pa.Array, processes: Ints, start: Ints, end: Ints | None = None
    ) -> npt.NDArray[np.bool_]:
        """Stages the values that belong to events; of those that end, 0 stands at the end.

        Returns:
            Which of the events have values.
        """
        wanted = events.fill_null(NO_NUMBER).to_numpy(zero_copy_only=False)
        first, last = (np.searchsorted(self._events, wanted, side) for side in ("left", "right"))
        last = np.where(events.is_valid().to_numpy(zero_copy_only=False), last, first)
        count = last - first
        row = np.repeat(np.arange(len(wanted)), count)
        if len(row):
            place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + first[row]
            self._is_told[place] = True
            lanes = self._lanes_of(processes[row], self._counters[place])
            self._recording.append_samples(lanes, start[row], self._values[place])
            if end is not None:
                self._recording.append_samples(lanes, end[row], np.zeros(len(row)))
        return np.asarray(count > 0)

    def finish(self) -> None:
        """Tells of values that belong to nothing with a time."""
        left = int(np.count_nonzero(~self._is_told))
        self._recording.warn("Values of counters without a time were left out.", count=left)

    def _lanes_of(self, processes: Ints, counters: Ints) -> pa.Array:
        different, places = distinct_rows(processes, counters)
        lanes = [self._lane(process, counter) for process, counter in different.tolist()]
        return pa.array(np.array(lanes, np.int32)[places])

    def _lane(self, process: int, counter: int) -> int:
        name, unit, agent = self._about.get(counter, (f"counter {counter}", None, None))
        gpu = self._session.agents.get(NO_NUMBER if agent is None else agent)
        return self._lanes.counter(process, f"GPU {gpu.device}" if gpu else "host", name, unit)


def _sums(session: Session) -> tuple[Ints, Ints, Floats]:
    """Event, counter and value of each, by event."""
    kept = [pa.table({"event": pa.nulls(0, pa.int64()), "counter": pa.nulls(0, pa.int64()),
                      "value_sum": pa.nulls(0, pa.float64())})]  # fmt: skip
    for batch in session.batches("pmc_event", ["event_id", "pmc_id"], (), ["value"]):
        rows = pa.table({"event": batch[0], "counter": batch[1], "value": batch[2]}).drop_null()
        kept.append(
            rows.group_by(["event", "counter"]).aggregate([("value", "sum")]).select(kept[0].column_names)
        )
    rows = pa.concat_tables(kept).rename_columns(["event", "counter", "value"])
    sums = rows.group_by(["event", "counter"]).aggregate([("value", "sum")]).sort_by("event")
    found = [sums[name].to_numpy() for name in ("event", "counter", "value_sum")]
    return found[0], found[1], np.nan_to_num(found[2], nan=0.0, posinf=0.0, neginf=0.0)


def _descriptions(session: Session) -> dict[int, tuple[str, str | None, int | None]]:
    """Name, unit and agent of each counter."""
    found = {}
    for batch in session.batches("info_pmc", ["id", "agent_id"], ["symbol", "name", "units"]):
        for row in batch.to_pylist():
            if row["id"] is not None:
                name = row["symbol"] or row["name"] or f"counter {row['id']}"
                found[row["id"]] = (name, row["units"] or None, row["agent_id"])
    return found
