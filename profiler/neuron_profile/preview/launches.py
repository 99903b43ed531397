"""The kernel calls of a profile that a source file takes part in."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.records.kernel_source import KernelLaunch

EXECUTABLE_SHIFT = 32
"""Ids of stack frames of executable n start at n << 32."""
_LAUNCHES = f"""
WITH touching AS (
    SELECT DISTINCT process_idx, stack_frame_id >> {EXECUTABLE_SHIFT} AS executable_idx
    FROM KernelStackFrames WHERE file_path = $file
)
SELECT DISTINCT launch.* FROM KernelLaunch launch LEFT JOIN touching USING (process_idx, executable_idx)
WHERE launch.file_path = $file OR touching.executable_idx IS NOT NULL
ORDER BY process_idx, executable_idx, line_number
"""
_CALLS = """
SELECT process_idx, executable_idx, framework_name, coalesce(source_file, '') AS file,
    coalesce(source_line, 0) AS line, count(*) AS times
FROM FrameworkInstruction WHERE framework_name LIKE 'nki::%' GROUP BY ALL
"""


@frozen
class Site:
    """A line that calls a kernel, and how often it did."""

    file: str
    line: int
    times: int


@frozen
class RecordedLaunch:
    """A kernel call of a profile.

    Attributes:
        launch: What was called, without data.
        sites: Where from.
    """

    launch: KernelLaunch
    sites: tuple[Site, ...]


def launches_of(profile: Profile, file: str) -> tuple[RecordedLaunch, ...]:
    """The kernel calls whose kernel, or what it calls, stands in a file; each once, in the profile's order.

    A call that ran on two physical cores is one call.
    """
    if not profile.tables().get("KernelLaunch"):
        return ()
    calls: dict[tuple[Any, ...], list[Site]] = defaultdict(list)
    for row in profile.query(_CALLS).to_pylist():
        key = (row["process_idx"], row["executable_idx"], row["framework_name"])
        calls[key].append(Site(row["file"], row["line"], row["times"]))
    found: dict[KernelLaunch, tuple[Site, ...]] = {}
    for row in profile.query(_LAUNCHES, {"file": file}).to_pylist():
        name = row["function"].rpartition(".")[2]
        sites = calls.get((row["process_idx"], row["executable_idx"], f"nki::{name}"), [])
        found.setdefault(_launch(row), tuple(sites))
    return tuple(RecordedLaunch(launch, sites) for launch, sites in found.items() if sites)


def _launch(row: dict[str, Any]) -> KernelLaunch:
    return KernelLaunch(
        row["module"], row["function"], row["file_path"], row["line_number"], row["arguments"],
        tuple(json.loads(row["grid"])), row["cores"],
    )  # fmt: skip
