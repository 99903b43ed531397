"""Runs executions on several NeuronCores of this process at once: none begins before all can."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuron_tools.device import native


def run_at_once(executions: Sequence[tuple[int, int]], name: str) -> None:
    """Place one execution on each of the first cores: their collectives wait for each other.

    Args:
        executions: Executable number and device time in ns of each core's.
        name: What they are called.
    """
    _begin(len(executions))
    for core, (executable, duration_ns) in enumerate(executions):
        with torch.neuron.device(torch.device("neuron", core)):
            native.run_graph(executable, duration_ns, native.intern_name(name))
    _end(len(executions))


def _begin(cores: int) -> None:
    issued = [native.issue_collective(core, False) for core in range(cores)]
    ready_ns = max((each[1] for each in issued if each), default=0)
    for core in range(cores):
        native.hold_stream(core, ready_ns)


def _end(cores: int) -> None:
    """Let no core be done before the last one is, which began last: its collectives wait for that."""
    streams = [torch.accelerator.current_stream(torch.device("neuron", core)) for core in range(cores)]
    done = streams[-1].record_event()
    for stream in streams[:-1]:
        stream.wait_event(done)
