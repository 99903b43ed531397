"""The same function is compiled again and again."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.compilation import by_function, find_compilations
from neuron_profile.analysis.own_lines import load_own_lines
from neuron_profile.analysis.source_frames import SourceLine, load_frames

MINIMUM_COMPILATIONS = 3
MINIMUM_SPREAD = 0.5  # of the program's time: what is compiled while a program sets itself up is no fault
_WINDOW = "SELECT max(execution_end_ts) - min(execution_start_ts) AS window_ns FROM ExecutionInfo"
_STACK = """
SELECT stack_frame_ids AS leaf, source_file AS file, source_line AS line, count(*) AS calls
FROM HostSpan WHERE kind = 'dispatch' AND name = ? AND source_file IS NOT NULL
GROUP BY ALL ORDER BY calls DESC, file, line LIMIT 1
"""
_DEFINES = ("@", "def ", "async def ")
"""How a line begins that defines a function: what is compiled of the function runs as if it stood there."""


def find(context: Context) -> Iterator[Finding]:
    """A finding per function that is compiled at least three times, all through the program.

    The gain is the time of all its compilations but the longest, which one compilation would still take.
    """
    (window,) = context.profile.query(_WINDOW).to_pylist()
    compilations = find_compilations(context.profile)
    compiling_ns = sum(compilation.compile_ns for compilation in compilations)
    for (_, name), graphs in by_function(compilations).items():
        first = [graph.first_ns for graph in graphs if graph.first_ns is not None]
        if (
            len(first) < MINIMUM_COMPILATIONS
            or max(first) - min(first) < MINIMUM_SPREAD * window["window_ns"]
        ):
            continue
        times = [graph.compile_ns for graph in graphs]
        running_ns = context.what_if.recorded_ns() if context.what_if else window["window_ns"]
        yield Finding(
            "recompilation",
            f"{name} is compiled {len(graphs)} times, each for other shapes or constants",
            "Give it inputs of the same shapes, types and Python values: pad to a few sizes, mark "
            "sizes dynamic (torch.compile(dynamic=True)), pass changing numbers as tensors.",
            _calling_line(context, graphs[0].name) or Place(operation=name),
            gain_ns=sum(times) - max(times),
            device_gain_ns=0,
            total_ns=running_ns + compiling_ns,
            gain_of="the program with its compilations, which its own clock leaves out",
            evidence={
                "compilations": len(graphs),
                "compile_time_ns": sum(times),
                "estimated": any(graph.estimated for graph in graphs),
            },
        )


def _calling_line(context: Context, graph: str) -> Place | None:
    """The line that calls a compiled function with what it is compiled for; None where it is not known."""
    rows = context.profile.query(_STACK, [graph]).to_pylist()
    if not rows:
        return None
    place = SourceLine(rows[0]["file"], rows[0]["line"])
    frames, own = load_frames(context.profile), load_own_lines(context.profile)
    leaf = rows[0]["leaf"]
    while context.texts.line(place).startswith(_DEFINES) and leaf in frames and frames[leaf].parent in own:
        leaf = frames[leaf].parent
        place = own[leaf].place
    return Place(place.file, place.line)
