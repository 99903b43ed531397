"""Runs the stages of a NeuronCore Pipeline: each on its core, once the core before has handed on its results.

Where a request comes while earlier ones are still on their way, all cores work at once: their loads share the
memory of their chip, and each takes the time that it takes beside the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import torch

from neuron_tools import hardware
from neuron_tools.device import native
from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_trace.pipeline import HANDED_ON
from neuron_tools.frontends.torch_trace.placement import check_cores, on_core
from neuron_tools.hardware import links
from neuron_tools.neff import Neff
from neuron_tools.records.program import Program


def run_stages(provider: executables.ExecutableProvider, neff: Neff, digest: str) -> int:
    """Place one request on the cores from the current one on.

    Args:
        provider: Times the stages.
        neff: The archive.
        digest: Stands for it.

    Returns:
        The core that has the results.

    Raises:
        TraceError: This process has too few cores.
    """
    first = int(torch.neuron.current_device())
    programs = neff.programs
    cores = range(first, first + len(programs))
    check_cores(cores)
    with native.paused_clock():
        timed = _timed(provider, programs, digest, _is_busy(cores[-1]))
        handed_on = _handovers_ns(neff, first)
    for number, (core, (executable, duration_ns)) in enumerate(zip(cores, timed)):
        with on_core(core):
            if number:
                _follow(core - 1, core, handed_on[number - 1])
            native.run_graph(executable, duration_ns, native.intern_name(programs[number].name))
    return cores[-1]


def _timed(
    provider: executables.ExecutableProvider, programs: Sequence[Program], digest: str, streams: bool
) -> list[tuple[int, int]]:
    if streams:
        return provider.executables_together(programs, ("stages", digest))
    return [
        provider.executable_of(program, ("stage", digest, number)) for number, program in enumerate(programs)
    ]


def _is_busy(core: int) -> bool:
    """Whether a core still works on what it was given."""
    return not torch.accelerator.current_stream(torch.device("neuron", core)).query()


def _follow(core: int, next_core: int, way_ns: int) -> None:
    """Let a core begin when the one before it is done and its results have come."""
    before, after = (
        torch.accelerator.current_stream(torch.device("neuron", each)) for each in (core, next_core)
    )
    after.wait_event(before.record_event())
    done = native.issue_collective(core, False) if way_ns else None
    if done is not None:
        native.hold_stream(next_core, done[1] + way_ns)


def _handovers_ns(neff: Neff, first: int) -> list[int]:
    """How long the results of each stage are on their way to the next core.

    Cores of a chip share its memory, and the start of an execution holds the signal from core to core;
    results for another chip go over its link.
    """
    ways = _links(neff.program.target)
    found = []
    for number, byte_count in enumerate(json.loads(neff.attachments[HANDED_ON])):
        group = (first + number, first + number + 1)
        crosses = ways.place(group[0]).chip != ways.place(group[1]).chip and ways.chip_bandwidth > 0
        way_ns = ways.hop_ns(group) + byte_count / ways.chip_bandwidth * 1e9 if crosses else 0.0
        found.append(round(way_ns))
    return found


@cache
def _links(target: str) -> hardware.Links:
    return links(hardware.device(target))
