"""What compiling cost: graphs that were compiled, and which of them are one function compiled again.

Compiling takes no virtual host time, as a warm compile cache would have it. Its time is told beside the
program's: as it was measured, or, where the capture's clock was fixed, as `estimated_ns` has it.
"""

from __future__ import annotations

import re
from collections import defaultdict

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

# About what the compiler of this project takes on two cores of a server (docs/compiler.md); neuronx-cc takes
# seconds to minutes, so these are a floor.
GRAPH_NS, INSTRUCTION_NS = 10_000_000, 10_000

_GRAPHS = """
SELECT coalesce(executable.process_idx, 0) AS process, executable.executable_idx AS number,
    executable.name AS name, executable.compile_time_ns AS compile_ns,
    coalesce(executable.instruction_count, 0) AS instructions,
    min(execution_start_ts) AS first_ns
FROM Executable executable LEFT JOIN ExecutionInfo execution
    ON execution.executable_idx = executable.executable_idx
    AND coalesce(execution.process_idx, 0) = coalesce(executable.process_idx, 0)
WHERE executable.kind = 'graph' GROUP BY ALL ORDER BY process, number
"""
_NUMBER = re.compile(r"_\d+_")


@frozen
class Compilation:
    """One graph that was compiled.

    Attributes:
        number: Of its executable.
        function: Its name without the number that torch.compile gives it.
        compile_ns: Time that it took; `estimated` = by its size.
        first_ns: When it first ran; None = it never did.
    """

    process: int
    number: int
    name: str
    function: str
    compile_ns: int
    estimated: bool
    first_ns: int | None


def find_compilations(profile: Profile) -> tuple[Compilation, ...]:
    """All graphs in the order in which they were compiled."""
    return tuple(
        Compilation(
            row["process"], row["number"], row["name"], _NUMBER.sub("_", row["name"]),
            row["compile_ns"] or estimated_ns(row["instructions"]), row["compile_ns"] is None,
            row["first_ns"],
        )
        for row in profile.query(_GRAPHS).to_pylist()
    )  # fmt: skip


def estimated_ns(instructions: int) -> int:
    """Time to compile a graph of so many instructions."""
    return GRAPH_NS + INSTRUCTION_NS * instructions


def by_function(compilations: tuple[Compilation, ...]) -> dict[tuple[int, str], list[Compilation]]:
    """Compilations of each function of each process."""
    groups: defaultdict[tuple[int, str], list[Compilation]] = defaultdict(list)
    for compilation in compilations:
        groups[compilation.process, compilation.function].append(compilation)
    return dict(groups)
