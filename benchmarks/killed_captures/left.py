"""What a kill left: opened as a user finds it, recovered where it asks for that, and opened again."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.killed_captures.scenes import ENDED, NOTES, PROFILE, TICK
from neuron_tools.capture.recovery import recover, recovery_notice
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.store import layout

NEVER_LOST_S = 1.0
Times = dict[int, npt.NDArray[np.int64]]
Ticks = set[tuple[int, int]]
_TICK = re.compile(TICK.format(program=r"(\d+)", number=r"(\d+)"))
_NOTES = re.compile(NOTES.format(program=r"(\d+)"))


@frozen
class Left:
    """What was left; see `campaign.Kill`."""

    written: int
    kept: int = 0
    lost_s: float = 0.0
    opened: str = "no profile"
    finding: str = ""


def judged(folder: Path, programs: int, killed_ns: int) -> Left:
    """What a kill at that moment left in a folder.

    Args:
        programs: How many were to be recorded.
        killed_ns: Of the monotonic clock.
    """
    done, profile = _done(folder, killed_ns), folder / PROFILE
    written = sum(map(len, done.values()))
    if not (profile / layout.MANIFEST_NAME).exists():
        lost_s = _lost_s(done, set(), killed_ns)
        return Left(written, lost_s=lost_s, finding=_finding(lost_s, is_claimed=False))
    try:
        claims, kept, opened = _opened(profile)
    except Exception as error:  # whatever it is, it must not be
        return Left(written, finding=f"{type(error).__name__}: {error}")
    lost_s = _lost_s(done, kept, killed_ns)
    is_all = len(list(folder.glob(f"*{ENDED}"))) == programs
    return Left(written, len(kept), lost_s, opened, _finding(lost_s, is_claimed=claims and not is_all))


def _done(folder: Path, killed_ns: int) -> Times:
    """When ticks were done before the kill, by program."""
    found = {path: _NOTES.fullmatch(path.name) for path in folder.iterdir()}
    times = {int(match[1]): _times(path) for path, match in found.items() if match}
    return {program: each[each <= killed_ns] for program, each in times.items()}


def _times(path: Path) -> npt.NDArray[np.int64]:
    content = path.read_bytes()
    return np.frombuffer(content[: len(content) // 8 * 8], "<i8").astype(np.int64)


def _opened(profile: Path) -> tuple[bool, Ticks, str]:
    """Whether it claimed to be whole at any time, the ticks it holds, and how it opened.

    Raises:
        AssertionError: In the end the work of some ticks is missing.
    """
    claims, kept, executions = _look(profile)
    told = _told(claims)
    if recovery_notice(profile) is not None:
        recover(profile)
        claims_now, kept, executions = _look(profile)
        claims, told = claims or claims_now, f"{_told(claims_now)} recovered"
    if executions < len(kept):
        raise AssertionError(f"{len(kept)} ticks have {executions} executions")
    return claims, kept, told


def _told(claims: bool) -> str:
    return "complete" if claims else "incomplete"


def _look(profile: Path) -> tuple[bool, Ticks, int]:
    """Whether it says that it is whole, its ticks, and how many executions; the summary must come out."""
    with open_profile(profile) as opened:
        opened.summary()
        names = opened.sql("SELECT DISTINCT name FROM HostSpan").fetchall()
        ticks = {(int(match[1]), int(match[2])) for (name,) in names if (match := _TICK.fullmatch(name))}
        return opened.complete, ticks, opened.tables().get("ExecutionInfo", 0)


def _lost_s(done: Times, kept: Ticks, killed_ns: int) -> float:
    """How long before the kill the first lost tick was done."""
    lost = [
        time_ns
        for program, times in done.items()
        for number, time_ns in enumerate(times)
        if (program, number) not in kept
    ]
    return float(killed_ns - min(lost)) / 1e9 if lost else 0.0


def _finding(lost_s: float, *, is_claimed: bool) -> str:
    if is_claimed:
        return "it claims to be whole, and is not"
    return f"{lost_s:.2f} s are lost" if lost_s > NEVER_LOST_S else ""
