"""The same function is compiled again and again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.compilation import Compilation, by_function, find_compilations
from neuron_profile.analysis.jax_functions import is_single_operation
from neuron_profile.analysis.own_lines import load_own_lines
from neuron_profile.analysis.source_frames import SourceLine, load_frames

MINIMUM_COMPILATIONS = 3
MINIMUM_SPREAD = 0.5  # of the program's time: what is compiled while a program sets itself up is no fault
OF_JAX = "jit_"
"""How JAX's names of what it compiles begin."""
OF_TORCH_COMPILE = re.compile(r"(.+)_(forward|backward|inference)")
"""What torch.compile calls its graphs: a function's forward and backward pass have the same first part."""
OF_XLA = re.compile(r"step_(.+:\d+)")
"""What the steps of PyTorch/XLA are called: by the place that asks for their values."""
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

    The gain is the time of all its compilations but the longest, which one compilation would still take. JAX
    compiles the operations outside of `jax.jit` too: they see the shapes that the function sees which is
    compiled most often, and are part of its finding. So is a backward pass, of that of the forward pass.
    """
    (window,) = context.profile.query(_WINDOW).to_pylist()
    compilations = find_compilations(context.profile)
    compiling_ns = sum(compilation.compile_ns for compilation in compilations)
    running_ns = context.what_if.recorded_ns() if context.what_if else window["window_ns"]
    again = [
        graphs for graphs in by_function(compilations).values() if _is_again(graphs, window["window_ns"])
    ]
    for graphs, others in _by_cause(context, again):
        yield _finding(context, graphs, others, running_ns + compiling_ns)


def _is_again(graphs: Sequence[Compilation], window_ns: int) -> bool:
    """Whether a function is compiled all through the program."""
    first = [graph.first_ns for graph in graphs if graph.first_ns is not None]
    return len(first) >= MINIMUM_COMPILATIONS and max(first) - min(first) >= MINIMUM_SPREAD * window_ns


Graphs = Sequence[Compilation]


def _by_cause(context: Context, again: Sequence[Graphs]) -> Iterator[tuple[Graphs, Sequence[Graphs]]]:
    """Each function with what is compiled because of the same shapes."""
    for process in sorted({graphs[0].process for graphs in again}):
        own = {graphs[0].function: graphs for graphs in again if graphs[0].process == process}
        causes = _causes(context, own)
        for name, graphs in own.items():
            if causes[name] == name:
                yield graphs, [own[other] for other in own if causes[other] == name and other != name]


def _causes(context: Context, functions: Mapping[str, Graphs]) -> dict[str, str]:
    """The function because of whose shapes each of one process is compiled: mostly itself."""
    single = [name for name, graphs in functions.items() if _are_operations(context, graphs)]
    others = [name for name in functions if name not in single]
    most = max(others or single, key=lambda name: len(functions[name]))
    return dict.fromkeys(single, most) | {name: _forward(name, functions) for name in others}


def _forward(name: str, functions: Collection[str]) -> str:
    """The function whose backward pass `name` is, where it is one of these; else `name`."""
    graph = OF_TORCH_COMPILE.fullmatch(name)
    forward = f"{graph[1]}_forward" if graph else name
    return forward if forward in functions else name


def _are_operations(context: Context, graphs: Graphs) -> bool:
    executions = context.executions
    if executions is None or not graphs[0].name.startswith(OF_JAX):
        return False
    return all(is_single_operation(executions.program((graph.process, graph.number))) for graph in graphs)


def _finding(context: Context, graphs: Graphs, others: Sequence[Graphs], total_ns: int) -> Finding:
    name = graphs[0].function
    times = [[graph.compile_ns for graph in each] for each in (graphs, *others)]
    return Finding(
        "recompilation",
        f"{_called(name)} is compiled {len(graphs)} times, each for other shapes or constants",
        _remedy(name),
        _calling_line(context, graphs[0].name) or Place(operation=name),
        gain_ns=sum(sum(each) - max(each) for each in times),
        device_gain_ns=0,
        total_ns=total_ns,
        gain_of="the program with its compilations, which its own clock leaves out",
        evidence={
            "compilations": len(graphs),
            "compile_time_ns": sum(map(sum, times)),
            "estimated": any(graph.estimated for graph in graphs),
            **({"operations": sorted(each[0].function for each in others)} if others else {}),
        },
    )


def _called(function: str) -> str:
    step = OF_XLA.fullmatch(function)
    return f"The step at {step[1]}" if step else function


def _remedy(function: str) -> str:
    is_dynamic = OF_TORCH_COMPILE.fullmatch(function)
    sizes = "mark sizes dynamic (torch.compile(dynamic=True)), " if is_dynamic else ""
    return (
        "Give it inputs of the same shapes, types and Python values: pad to a few sizes, "
        f"{sizes}pass changing numbers as tensors."
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
