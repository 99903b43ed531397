"""Clocks of Perfetto traces: every timestamp on the trace's main clock, in nanoseconds.

See https://perfetto.dev/docs/concepts/clock-sync: clocks 64 to 127 belong to one sequence and may count in
steps from packet to packet; the others are tied to each other by snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.protobuf_fields import Messages

REALTIME, BOOTTIME = 1, 6
FIRST_SEQUENCE_CLOCK, LAST_SEQUENCE_CLOCK = 64, 127


@dataclass
class _SequenceClock:
    """A clock of one sequence: where it stands, and what is added to get the main clock."""

    value_ns: int
    to_main_ns: int
    unit_ns: int
    is_incremental: bool


class Clocks:
    """Brings timestamps to the main clock.

    Attributes:
        unix_ns: What to add to the main clock to get the time since 1970; None if no snapshot tells.
    """

    def __init__(self) -> None:
        self.unix_ns: int | None = None
        self._to_main: dict[int, int] = {}
        self._sequences: dict[tuple[int, int], _SequenceClock] = {}
        self.default: dict[int, int] = {}
        """Clock of the packets of a sequence that name none."""

    def to_main(
        self,
        time: Ints,
        clock: Ints,
        sequence: Ints,
        snapshots: tuple[Ints, Messages],
    ) -> Ints:
        """Times of packets on the main clock, int64 nanoseconds, shape (packets,).

        Args:
            time: int64, shape (packets,): as written.
            clock: int64, shape (packets,): clock that each names; 0 = none.
            sequence: int64, shape (packets,).
            snapshots: The packets that are clock snapshots, and the snapshots.
        """
        packets, messages = snapshots
        clock = self._with_defaults(clock, sequence)
        by_sequence = (clock >= FIRST_SEQUENCE_CLOCK) & (clock <= LAST_SEQUENCE_CLOCK)
        found = time.copy()
        edges = [0, *packets.tolist(), len(time)]
        for number, (first, last) in enumerate(pairwise(edges)):
            part = slice(first, last)
            self._convert(found[part], time[part], clock[part], sequence[part], by_sequence[part])
            if number < len(messages):
                self._add_snapshot(messages.content(number), int(sequence[edges[number + 1]]))
        main: Ints = np.clip(found, -LARGEST_TIME, LARGEST_TIME)
        return main

    def _with_defaults(self, clock: Ints, sequence: Ints) -> Ints:
        clock = clock.copy()
        for own, default in self.default.items():
            clock[(clock == 0) & (sequence == own)] = default
        return clock

    def _convert(
        self,
        found: Ints,
        time: Ints,
        clock: Ints,
        sequence: Ints,
        by_sequence: np.ndarray,
    ) -> None:
        for other, offset in self._to_main.items():
            found[clock == other] += offset
        if not by_sequence.any():
            return
        for own in np.unique(sequence[by_sequence]).tolist():
            for number in np.unique(clock[by_sequence & (sequence == own)]).tolist():
                known = self._sequences.get((own, number))
                chosen = np.flatnonzero((sequence == own) & (clock == number))
                if known is None:
                    continue
                steps = np.clip(time[chosen], -(1 << 40), 1 << 40) if known.is_incremental else time[chosen]
                values = steps * known.unit_ns
                if known.is_incremental:
                    values = known.value_ns + np.cumsum(values)
                    known.value_ns = int(values[-1])
                found[chosen] = values + known.to_main_ns

    def _add_snapshot(self, content: bytes, sequence: int) -> None:
        try:
            snapshot = protos.ClockSnapshot.FromString(content)
        except Exception:  # the generated decoder has no public error class
            return
        times = {one.clock_id: _bounded(one.timestamp) for one in snapshot.clocks}
        main = times.get(BOOTTIME, next(iter(times.values()), 0))
        for one in snapshot.clocks:
            number, unit = int(one.clock_id), max(int(one.unit_multiplier_ns), 1)
            value = _bounded(int(one.timestamp) * unit)
            if FIRST_SEQUENCE_CLOCK <= number <= LAST_SEQUENCE_CLOCK:
                key = (sequence, number)
                self._sequences[key] = _SequenceClock(value, main - value, unit, bool(one.is_incremental))
            elif BOOTTIME in times and number != BOOTTIME:
                self._to_main.setdefault(number, main - value)
        if REALTIME in times and BOOTTIME in times and self.unix_ns is None:
            self.unix_ns = times[REALTIME] - times[BOOTTIME]


def _bounded(time: int) -> int:
    return min(max(time, 0), LARGEST_TIME)
