"""The host waits for a value in the loop, and the device then waits for the host."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.whatif.replay import Waits
from neuron_tools.profile.reader import Profile

MINIMUM_WAITS = 3
_WAITS = """
SELECT coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line, count(*) AS waits,
    sum(duration_ns) AS waited_ns
FROM HostSpan
WHERE kind = 'synchronize' OR (kind = 'copy' AND name NOT LIKE '%to_device%')
GROUP BY ALL HAVING count(*) >= ? ORDER BY waited_ns DESC, file, line
"""
_DISPATCH_NS = (
    "SELECT CAST(median(duration_ns) AS BIGINT) AS dispatch_ns FROM HostSpan WHERE kind = 'dispatch'"
)


def waiting_places(profile: Profile) -> frozenset[str]:
    """Each FILE:LINE that waits for the device several times."""
    rows = profile.query(_WAITS, [MINIMUM_WAITS]).to_pylist()
    return frozenset(f"{row['file']}:{row['line']}" for row in rows)


def find(context: Context) -> Iterator[Finding]:
    """A finding per line that waits for the device several times, with what the device loses by it."""
    if context.what_if is None:
        return
    total_ns = context.what_if.recorded_ns()
    for row in context.profile.query(_WAITS, [MINIMUM_WAITS]).to_pylist():
        place = Place(row["file"], row["line"])
        gain_ns = total_ns - context.what_if.without_waits_ns(_kept_on_device(context, place))
        if gain_ns <= 0:
            continue
        yield Finding(
            "host_synchronisation",
            f"The host waits for the device {row['waits']} times at one line, and the device then for "
            "the host",
            "Do not read values of the device in the loop (.item(), float(), print, .cpu()): keep them "
            "on the device and read them every hundredth step, or one step later.",
            place,
            gain_ns=gain_ns,
            device_gain_ns=0,
            total_ns=total_ns,
            evidence={"waits": row["waits"], "waited_ns": int(row["waited_ns"])},
        )


def _kept_on_device(context: Context, place: Place) -> Waits:
    """The waits of a line as they would be if the values stayed on the device until the end.

    There one operation joins them, and one wait remains. The operation takes as long as the quickest one that
    ran, or as launching it where none was that quick.
    """
    (host,) = context.profile.query(_DISPATCH_NS).to_pylist()
    executions = context.executions
    assert executions is not None
    durations = executions.end_ns - executions.start_ns
    quickest_ns = int(durations[durations > 0].min()) if np.any(durations > 0) else 0
    joining_ns = min(quickest_ns, round(executions.core.launch_overhead_ns))
    return Waits(place.file, place.line, 1, joining_ns, int(host["dispatch_ns"] or 0))
