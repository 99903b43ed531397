"""The tools that an agent calls: each method is one, its docstring what the agent reads about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from neuron_explorer.library import ProfileEntry, ProfileLibrary
from neuron_profile.agents import costs, questions
from neuron_profile.agents.answer import as_text
from neuron_tools.errors import UsageError
from neuron_tools.profile.reader import Profile

MOST_ROWS = 200


class Tools:
    """The tools over the profiles of a library. One call at a time computes: they would only slow each other.

    Args:
        library: What may be asked about; an agent reaches no other path.
    """

    def __init__(self, library: ProfileLibrary) -> None:
        self._library = library
        self._turn = Lock()

    def profiles(self) -> str:
        """List the profiles that can be asked about, newest captures included.

        Other tools take a profile's name or id; with a single profile it may be left out.
        """
        rows = [{"name": entry.name, "id": entry.id, "path": entry.location} for entry in self._entries()]
        return as_text({"rows": rows}, ["summary(profile)", "findings(profile)"])

    def summary(self, profile: str = "") -> str:
        """Summarize a profile: command, device and idle time, what bounds it, engines, memory, warnings."""
        with self._open(profile) as opened:
            answer = questions.summary(opened)
        return as_text(answer, ["findings()", "hotspots(level='line')", "steps()"])

    def hotspots(self, profile: str = "", level: str = "line", limit: int = 15, step: int = 0) -> str:
        """Rank where device time goes.

        level: operator, module, line, or kernel-line for lines inside kernels. step: a number that `steps`
        lists; 0 = the whole program.
        """
        with self._open(profile, step) as opened:
            answer = costs.hotspots(opened, level, _bounded(limit))
        return as_text(answer, ["lines(file, first, last)", "what_if(['line:FILE:LINE=0.5'])"])

    def lines(self, file: str, first: int = 1, last: int = 0, profile: str = "", step: int = 0) -> str:
        """Show lines of a source file that ran, with each line's device time.

        file: a path or its end. last: 0 = as many lines as fit.
        """
        with self._open(profile, step) as opened:
            answer = costs.lines(opened, file, first, last)
        return as_text(answer)

    def steps(self, profile: str = "", limit: int = 30) -> str:
        """List the program's steps (compiling, warm-up, steady, slow) and the typical one."""
        with self._open(profile) as opened:
            answer = questions.steps(opened, _bounded(limit))
        return as_text(answer, ["hotspots(step=TYPICAL)"])

    def findings(self, profile: str = "", limit: int = 8, step: int = 0) -> str:
        """List what slows the program down: line, what to change and the simulated gain, largest first."""
        with self._open(profile, step) as opened:
            answer = questions.findings(opened, _bounded(limit))
        return as_text(answer, ["lines(file, first, last) around a place", "what_if([a finding's what_if])"])

    def fix(self, finding: int = 0, profile: str = "") -> str:
        """Propose the edit that mends a finding, as a diff; nothing is written or run.

        finding: a number of `findings`; 0 = the first that an edit mends.
        """
        with self._open(profile) as opened:
            answer = questions.proposal(opened, finding)
        return as_text(answer, ["neuron-profile fix PROFILE --finding N measures it", "diff(base, new)"])

    def what_if(self, changes: list[str], profile: str = "") -> str:
        """Simulate the captured programs again with changes, all together; nothing is edited.

        Changes: FIGURE=VALUE (hbm_bandwidth=2x, dma_latency=0), op:NAME=FACTOR, operation:NAME=FACTOR,
        module:PATH=FACTOR, line:FILE:LINE=FACTOR, engine:NAME=FACTOR, opcode:NAME=FACTOR, dma=FACTOR,
        spill=FACTOR (0 = for nothing), dtype=bf16, buffers=own, tiles=fit.
        """
        with self._open(profile) as opened:
            answer = questions.what_if(opened, changes)
        return as_text(answer, ["make the change, capture again, then diff(base, new)"])

    def diff(self, base: str, new: str, limit: int = 15) -> str:
        """Compare two profiles by module and operation; pairs of times are [base, new]."""
        with self._open(base) as before, self._unlocked(new) as after:
            answer = questions.difference(before, after, _bounded(limit))
        return as_text(answer, ["findings(profile=NEW)"])

    def schema(self, table: str = "", profile: str = "") -> str:
        """List the tables that SQL can read, or the columns of one, with units and meanings."""
        if table:
            return as_text(questions.columns(table), ["sql(query)"])
        with self._open(profile) as opened:
            answer = questions.tables(opened)
        return as_text(answer, ["schema(table)", "sql(query)"])

    def sql(self, query: str, profile: str = "", limit: int = 50) -> str:
        """Run one reading statement (DuckDB SQL) over the profile's tables; times are nanoseconds."""
        with self._open(profile) as opened:
            answer = questions.query(opened, query, _bounded(limit))
        return as_text(answer, ["schema(table) for columns"])

    @contextmanager
    def _open(self, wanted: str, step: int = 0) -> Iterator[Profile]:
        """An open profile, or one step of it, while no other call computes."""
        with self._turn, self._unlocked(wanted) as opened:
            if not step:
                yield opened
                return
            part = questions.one_step(opened, step)
            try:
                yield part
            finally:
                part.close()

    @contextmanager
    def _unlocked(self, wanted: str) -> Iterator[Profile]:
        yield self._library.get(choose(self._entries(), wanted).id)

    def _entries(self) -> Sequence[ProfileEntry]:
        return self._library.entries()


def choose(entries: Sequence[ProfileEntry], wanted: str) -> ProfileEntry:
    """The profile of a name or id; of "", the only one.

    Raises:
        UsageError: None is meant, or several are.
    """
    if not entries:
        raise UsageError("There are no profiles yet: make one with `neuron-profile capture -- COMMAND`.")
    suffix = ".nprof"
    names = (wanted, wanted + suffix)
    found = [entry for entry in entries if not wanted or wanted == entry.id or entry.name in names]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{entry.name} ({entry.id})" for entry in (found or entries)[:20])
    reason = "Several profiles are meant" if found else "There is no such profile"
    raise UsageError(f"{reason}: name one of {listed}.")


def _bounded(limit: int) -> int:
    return min(max(1, limit), MOST_ROWS)
