"""The user's own line of each source stack, and of each exact line of a library."""

from __future__ import annotations

from collections.abc import Mapping

from neuron_profile.analysis.source_frames import SourceLine
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_LINES = "SELECT stack_frame_id, source_file, source_line, function, is_own FROM Frontier"
# Of several lines of the user's that reach one line of a library, the one with most time stands for them.
_CALLERS = """
WITH used AS (
    SELECT split_part(stack_frame_ids, ',', 1) AS leaf, source_file, source_line,
        sum(end_ts - start_ts) AS time_ns
    FROM FrameworkInstruction WHERE stack_frame_ids <> '' GROUP BY ALL
    UNION ALL
    SELECT stack_frame_ids, source_file, source_line, sum(duration_ns)
    FROM HostSpan WHERE stack_frame_ids <> '' AND kind <> 'module' GROUP BY ALL
), callers AS (
    SELECT used.source_file AS file, used.source_line AS line, own.source_file AS own_file,
        own.source_line AS own_line, any_value(own.function) AS function, sum(time_ns) AS time_ns
    FROM used JOIN Frontier own ON own.stack_frame_id = used.leaf
    WHERE own.is_own AND used.source_file IS NOT NULL GROUP BY ALL
)
SELECT file, line, own_file, own_line, function FROM callers
QUALIFY row_number() OVER (PARTITION BY file, line ORDER BY time_ns DESC, own_file, own_line) = 1
"""


@frozen
class OwnLine:
    """The innermost line of the user's own code on a stack.

    Attributes:
        is_own: False where the stack has none, and the line is the exact one.
    """

    place: SourceLine
    function: str
    is_own: bool


def load_own_lines(profile: Profile) -> dict[str, OwnLine]:
    """The own line of each stack, by the id of its innermost frame; empty where there are no stacks."""
    return profile.whole.kept("own lines", lambda: _load_own_lines(profile))


def _load_own_lines(profile: Profile) -> dict[str, OwnLine]:
    return {
        row["stack_frame_id"]: OwnLine(
            SourceLine(row["source_file"], row["source_line"]), row["function"], row["is_own"]
        )
        for row in profile.query(_LINES).to_pylist()
    }


def callers_of_lines(profile: Profile) -> Mapping[SourceLine, OwnLine]:
    """For each exact line that device or host spent time at, the user's line that most of it was spent for.

    Lines that only a stack without any line of the user's reaches are left out.
    """
    return {
        SourceLine(row["file"], row["line"]): OwnLine(
            SourceLine(row["own_file"], row["own_line"]), row["function"], True
        )
        for row in profile.query(_CALLERS).to_pylist()
    }
