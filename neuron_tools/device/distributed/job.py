"""A job of which not all ranks run: each process is one of its ranks, and others are stood in for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from neuron_tools.frozen import frozen

VARIABLE = "NEURON_TOOLS_JOB"
VALUES_VARIABLE = "NEURON_TOOLS_VALUES"


@frozen
class Job:
    """A job, as its ranks are told.

    Attributes:
        ranks: How many it has.
        running: Those that run, in order.
        asks: File in which the first rank that runs names the ranks that differ from it, and then ends;
            empty: it runs to its end.
    """

    ranks: int
    running: tuple[int, ...]
    asks: str = ""

    def places(self, group: Sequence[int]) -> tuple[int, ...]:
        """Places in a group of the ranks that run."""
        return tuple(place for place, rank in enumerate(group) if rank in self.running)

    def process_place(self, rank: int) -> int:
        """Of the processes of the job, which one a rank is, counted from 0."""
        return self.running.index(rank) if rank in self.running else rank

    def to_json(self) -> str:
        """The job as one line, for the environment."""
        return json.dumps({"ranks": self.ranks, "running": list(self.running), "asks": self.asks})

    def answer(self, ranks: Sequence[int]) -> None:
        """Name the ranks that differ from the one that runs, and end the process: that was its task."""
        Path(self.asks).write_text(json.dumps(sorted(ranks)), encoding="utf-8")
        os._exit(0)


def from_environment(environment: Mapping[str, str]) -> Job | None:
    """The job that a process is part of; None where all ranks run."""
    text = environment.get(VARIABLE)
    if not text:
        return None
    fields = json.loads(text)
    return Job(int(fields["ranks"]), tuple(fields["running"]), fields["asks"])


@cache
def current() -> Job | None:
    """The job of this process."""
    return from_environment(os.environ)
