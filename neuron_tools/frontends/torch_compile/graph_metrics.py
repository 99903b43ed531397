"""What is counted and timed when a graph is made, for `torch.neuron.get_dynamo_metrics`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from time import perf_counter_ns

from torch import fx

from neuron_tools.compiler.hlo import Module
from neuron_tools.device.api.compile_metrics import NeuronCompilationMetrics, record_compilation

_COLLECTIVES = ("_c10d_functional", "c10d_functional", "c10d")


def made(graph: fx.Graph, *, number: int, name: str, model_name: str) -> NeuronCompilationMetrics:
    """Keep what is known of a graph that was made.

    Args:
        graph: The graph.
        number: Tells graphs of the process apart.
        name: Of its executable.
        model_name: Of the model it is of.

    Returns:
        Its row, whose times are to be added.
    """
    row = NeuronCompilationMetrics(
        graph_id=str(number),
        graph_name=name,
        model_name=model_name,
        has_collectives=any(getattr(node.target, "namespace", "") in _COLLECTIVES for node in graph.nodes),
        graph_node_count=len(graph.nodes),
        timestamp=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
    )
    record_compilation(row)
    return row


class TimedLowering:
    """Lowers a graph where somebody asks for its module, and adds the time to the graph's row.

    Args:
        lower: Lowers it.
        row: The row.
    """

    def __init__(self, lower: Callable[[], Module], row: NeuronCompilationMetrics) -> None:
        self._lower = lower
        self._row = row
        self._lowered_ns = 0

    def __call__(self) -> Module:
        """The module."""
        begin_ns = perf_counter_ns()
        module = self._lower()
        self._lowered_ns = perf_counter_ns()
        self._row.torch_neuronx_lower_us += (self._lowered_ns - begin_ns) // 1000
        return module

    def compiled(self) -> None:
        """Add the time since the module was made: whoever asked for it has compiled it."""
        if self._lowered_ns:
            self._row.torch_neuronx_compile_us += (perf_counter_ns() - self._lowered_ns) // 1000
