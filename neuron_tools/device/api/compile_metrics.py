"""What `torch.compile` made for the device: a row for each graph, as TorchNeuron's `graph_stats`."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass
class NeuronCompilationMetrics:
    """One graph that `torch.compile(backend="neuron")` made.

    Attributes:
        graph_id: Tells graphs of this process apart.
        graph_name: Name of its executions in a profile.
        model_name: The name of the program's model: the one it gave, or the class of its module.
        has_collectives: Whether ranks communicate in it.
        graph_node_count: Nodes of its FX graph.
        timestamp: When it was made, in ISO 8601, UTC.
        torch_neuronx_fx_passes_us: Time for passes over the FX graph, in microseconds.
        torch_neuronx_lower_us: Time to make HLO of it, in microseconds. A graph is lowered and compiled when
            it runs under a capture first, for each of its shapes; before, this and the next are 0.
        torch_neuronx_compile_us: Time to compile the HLO and to time it on the device, in microseconds.
    """

    graph_id: str
    graph_name: str = ""
    model_name: str = ""
    has_collectives: bool = False
    graph_node_count: int = 0
    timestamp: str = ""
    torch_neuronx_fx_passes_us: int = 0
    torch_neuronx_lower_us: int = 0
    torch_neuronx_compile_us: int = 0


_rows: list[NeuronCompilationMetrics] = []


def record_compilation(row: NeuronCompilationMetrics) -> None:
    """Keep what is known of a graph, and count it in Dynamo's counters.

    Args:
        row: Of the graph; whoever made it goes on writing its times.
    """
    from torch._dynamo.utils import counters

    _rows.append(row)
    counters["neuron"]["compiled_graphs"] += 1
    counters["neuron"]["graphs_with_collectives"] += row.has_collectives


def get_dynamo_metrics() -> list[NeuronCompilationMetrics]:
    """The graphs that `torch.compile(backend="neuron")` has made in this process.

    Returns:
        One row a graph, in the order in which they were made.
    """
    return [replace(row) for row in _rows]


def reset_dynamo_metrics() -> None:
    """Forget the graphs that were made, and Dynamo's counters of the device."""
    from torch._dynamo.utils import counters

    _rows.clear()
    counters["neuron"].clear()
