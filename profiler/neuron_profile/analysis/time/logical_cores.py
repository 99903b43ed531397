"""Which physical cores stand for the logical ones that a program sees.

Both physical cores of a logical one run each execution, from its start to its end, and so the first of them
stands for it: in device time, in what that is charged to and in counts. Where it has no operation, it waits
for the other one, whose operation is charged. Work (bytes, FLOPs, instructions) is
that of both.
"""

from __future__ import annotations

from collections.abc import Iterable

from neuron_tools.profile.reader import Profile

EVERY = "true"


def physical_cores(profile: Profile) -> int:
    """Physical cores of a logical one; 1 in a profile of another tool, which numbers cores its own way."""
    return int(profile.metadata.get("lnc") or 1)


def of_first_cores(profile: Profile, column: str = "pcore_idx") -> str:
    """The SQL condition that a row belongs to the first physical core of a logical one."""
    size = physical_cores(profile)
    return f"coalesce({column}, 0) % {size} = 0" if size > 1 else EVERY


def first_cores(profile: Profile, cores: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of physical cores, (process_idx, number), those that stand for a logical one."""
    size = physical_cores(profile)
    return [core for core in cores if core[1] % size == 0]
