"""Runs what was recorded: compiled as one module, once for each signature, and timed as one execution."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from neuron_tools.compiler.hlo import Module
from neuron_tools.device import native
from neuron_tools.frontends import executables
from neuron_tools.frontends.together import run_at_once
from neuron_tools.frontends.torch_xla import spread
from neuron_tools.frontends.torch_xla.causes import cause_of
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.graph import GraphSignature, RecordedGraph
from neuron_tools.frontends.torch_xla.kept_graphs import keep_compiled
from neuron_tools.frontends.torch_xla.metrics import METRICS
from neuron_tools.frontends.torch_xla.origin import user_stack
from neuron_tools.frontends.torch_xla.sharding import Sharding
from neuron_tools.frontends.torch_xla.tensor import neuron_device
from neuron_tools.frontends.torch_xla.tracing import lower_recorded, lower_recorded_part


@dataclass
class KnownGraph:
    """A graph that ran before.

    Attributes:
        number: Its number.
        name: Its name.
        shardings: Of a partitioned one, how its results lie over the cores.
        is_compiled: Whether this process has an executable of it.
    """

    number: int
    name: str
    shardings: tuple[str, ...] = ()
    is_compiled: bool = False


_current = RecordedGraph()
_eager: list[bool] = [False]
_holds: list[bool] = [False]
_known: dict[GraphSignature, KnownGraph] = {}
_numbers = itertools.count()


def current_graph() -> RecordedGraph:
    """The graph that operations are added to now."""
    return _current


def is_eager() -> bool:
    """Whether each operation is a graph of its own."""
    return _eager[0]


@contextmanager
def eagerly(enable: bool) -> Iterator[bool]:
    """A block in which each operation is a graph of its own, or not; gives what was so before."""
    before = set_eager(enable)
    try:
        yield before
    finally:
        set_eager(before)


def set_eager(enable: bool) -> bool:
    """Let each operation be a graph of its own from now on, or not; what was so before."""
    before, _eager[0] = _eager[0], enable
    return before


@contextmanager
def holding(enable: bool) -> Iterator[None]:
    """A block in which nothing may run, or, where `enable` is False, any block."""
    before, _holds[0] = _holds[0], enable
    try:
        yield
    finally:
        _holds[0] = before


@contextmanager
def recorded_into(graph: RecordedGraph) -> Iterator[None]:
    """A block whose operations are recorded into another graph, which does not run."""
    global _current
    before, _current = _current, graph
    try:
        with eagerly(False):
            yield
    finally:
        _current = before


def sync(name: str = "") -> None:
    """Run what was recorded, if anything was; what comes next is recorded into a new graph.

    Args:
        name: What a graph is called that did not run before; by default after the line that runs it.

    Raises:
        XlaError: The program wants one graph here, and it is not at its end.
    """
    global _current
    graph = _current
    graph.refuse_to_run()
    if not graph.operations:
        return
    if _holds[0]:
        raise XlaError(
            "Unexpected execution happens inside the compiled function, exiting: a value is looked at (item, "
            "print, a condition, mark_step) before its end, so that it is not one graph. Look when it has "
            "returned, or leave out full_graph."
        )
    _current = RecordedGraph()
    graph.settle()
    outputs = graph.outputs()
    with native.paused_clock():
        known = _look_up(graph.signature(outputs), name)
        timed = _timed(graph, outputs, known)
    for value in graph.held:
        spread.bring(value)
    if timed is not None:
        METRICS.add(_metric("ExecuteTime"), timed[1])
        _run(timed, known.name)
    if spread.is_spread():
        _lay_out(graph, outputs, known)


def _metric(name: str) -> str:
    """PyTorch/XLA counts the graphs of eager mode by themselves."""
    return f"EagerOp{name}" if is_eager() else name


def _run(timed: tuple[int, int], name: str) -> None:
    if spread.is_spread():
        run_at_once([timed] * spread.core_count(), name)
        return
    with torch.neuron.device(neuron_device()):
        native.run_graph(*timed, native.intern_name(name))


def _lay_out(graph: RecordedGraph, outputs: tuple[int, ...], known: KnownGraph) -> None:
    """Let the results lie over the cores as the partitioner chose."""
    shardings = dict(zip(outputs, known.shardings))  # none without a capture
    for number, value in graph.made().items():
        if sharding := shardings.get(number):
            value.sharding = Sharding.parse(sharding)
        spread.make(value)


def _look_up(signature: GraphSignature, name: str) -> KnownGraph:
    known = _known.get(signature)
    METRICS.count("UncachedCompile" if known is None else "CachedCompile")
    if known is not None:
        return known
    METRICS.causes.append(cause_of(signature, list(_known)))
    number = next(_numbers)
    _known[signature] = made = KnownGraph(number, name or f"step_{number}_{_place()}")
    return made


def _place() -> str:
    """FILE:LINE of the user's code that let the graph run: graphs of one line are one function's."""
    stack = user_stack(sys._getframe(1))
    return f"{stack[0].file.rsplit('/', 1)[-1]}:{stack[0].line}" if stack else "step"


def _timed(graph: RecordedGraph, outputs: tuple[int, ...], known: KnownGraph) -> tuple[int, int] | None:
    def lower() -> Module:
        METRICS.count("CompiledGraphs")
        if not spread.is_spread():
            return lower_recorded(graph, outputs, known.name)
        part = lower_recorded_part(graph, outputs, known.name, spread.core_count())
        known.shardings = part.results
        return part.module

    provider = executables.current()
    if provider is None:
        keep_compiled(lower, known.number)
        return None
    started_ns = time.perf_counter_ns()
    timed = provider.executable_for(lower, ("xla", known.number, *graph.trips), known.name)
    if not known.is_compiled:
        METRICS.add(_metric("CompileTime"), time.perf_counter_ns() - started_ns)
        known.is_compiled = True
    return timed
