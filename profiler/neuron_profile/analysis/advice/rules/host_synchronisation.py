"""The host waits for a value in the loop, and the device then waits for the host."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.time.core_spans import EXECUTION_EVENT
from neuron_profile.analysis.whatif.joining import joining_values_ns
from neuron_profile.analysis.whatif.replay import Waits
from neuron_tools.profile.reader import Profile

MINIMUM_WAITS = 3
# What is read behind the device's last work keeps nothing waiting: a model that goes back to the host.
_WAITS = f"""
WITH last AS (
    SELECT coalesce(process_idx, 0) AS process, max(end_ts) AS end_ns
    FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}' GROUP BY ALL
)
SELECT coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line, count(*) AS waits,
    sum(duration_ns) AS waited_ns
FROM HostSpan span LEFT JOIN last ON coalesce(span.process_idx, 0) = process
WHERE (kind = 'synchronize' OR (kind = 'copy' AND name NOT LIKE '%to_device%'))
    AND (end_ns IS NULL OR start_ts < end_ns)
    AND NOT EXISTS (
        SELECT 1 FROM SystemProfileEvents write WHERE write.name = 'nrt_tensor_write'
            AND write.start_ts = span.start_ts AND write.end_ts = span.end_ts
            AND coalesce(write.process_idx, 0) = coalesce(span.process_idx, 0)
    )
GROUP BY file, line HAVING count(*) >= ? ORDER BY waited_ns DESC, file, line
"""
_DISPATCH_NS = (
    "SELECT CAST(median(duration_ns) AS BIGINT) AS dispatch_ns FROM HostSpan WHERE kind = 'dispatch'"
)
_READ = """
SELECT count(*) AS values, median(CAST(event.extra_attributes_json->>'$.bytes' AS BIGINT)) AS bytes
FROM HostSpan span JOIN SystemProfileEvents event ON event.name = 'nrt_tensor_read'
    AND span.start_ts = event.start_ts AND span.end_ts = event.end_ts
    AND coalesce(span.process_idx, 0) = coalesce(event.process_idx, 0)
WHERE span.kind = 'copy' AND coalesce(span.source_file, '') = ? AND coalesce(span.source_line, 0) = ?
"""


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

    There one operation joins the values that were read, and one wait remains.
    """
    (host,) = context.profile.query(_DISPATCH_NS).to_pylist()
    (read,) = context.profile.query(_READ, [place.file, place.line]).to_pylist()
    if not read["values"]:
        return Waits(place.file, place.line)
    assert context.executions is not None
    joining_ns = joining_values_ns(context.executions.core, read["values"], int(read["bytes"] or 0))
    return Waits(place.file, place.line, 1, joining_ns, int(host["dispatch_ns"] or 0))
