"""The same function is compiled again and again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place

MINIMUM_COMPILATIONS = 3
MINIMUM_SPREAD = 0.5  # of the program's time: what is compiled while a program sets itself up is no fault
_GRAPHS = """
SELECT coalesce(executable.process_idx, 0) AS process, executable.name AS name,
    coalesce(executable.compile_time_ns, 0) AS compile_ns, min(execution_start_ts) AS first_ns
FROM Executable executable JOIN ExecutionInfo execution
    ON execution.executable_idx = executable.executable_idx
    AND coalesce(execution.process_idx, 0) = coalesce(executable.process_idx, 0)
WHERE executable.kind = 'graph' GROUP BY ALL
"""
_WINDOW = "SELECT max(execution_end_ts) - min(execution_start_ts) AS window_ns FROM ExecutionInfo"
_PLACE = """
SELECT coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line, count(*) AS calls
FROM HostSpan WHERE kind = 'dispatch' AND name = ? AND source_file IS NOT NULL
GROUP BY ALL ORDER BY calls DESC, file, line LIMIT 1
"""
_NUMBER = re.compile(r"_\d+_")


def find(context: Context) -> Iterator[Finding]:
    """A finding per function that is compiled at least three times, all through the program."""
    (window,) = context.profile.query(_WINDOW).to_pylist()
    groups: defaultdict[tuple[int, str], list[dict[str, object]]] = defaultdict(list)
    for row in context.profile.query(_GRAPHS).to_pylist():
        groups[row["process"], _NUMBER.sub("_", row["name"])].append(row)
    for (_, name), rows in groups.items():
        first = [int(str(row["first_ns"])) for row in rows]
        spread = max(first) - min(first)
        if len(rows) < MINIMUM_COMPILATIONS or spread < MINIMUM_SPREAD * (window["window_ns"] or 0):
            continue
        places = context.profile.query(_PLACE, [rows[0]["name"]]).to_pylist()
        yield Finding(
            "recompilation",
            f"{name} was compiled {len(rows)} times",
            "Give it inputs of the same shapes, types and Python values: pad to a few sizes, mark "
            "sizes dynamic (torch.compile(dynamic=True)), pass changing numbers as tensors.",
            Place(places[0]["file"], places[0]["line"]) if places else Place(operation=name),
            evidence={
                "compilations": len(rows),
                "compile_time_ns": sum(int(str(row["compile_ns"])) for row in rows),
            },
        )
