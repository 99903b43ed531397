"""Runs one program on several NeuronCores of this process at once: a rank on each.

Importing this module registers `neuron_tools::run_ranks`, which `torch.classes.neuron.SPMDModel` calls.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from neuron_tools.frontends import executables
from neuron_tools.frontends.together import run_at_once
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.operator import check_inputs, load
from neuron_tools.frontends.torch_trace.placement import check_cores
from neuron_tools.frontends.torch_trace.plain_errors import keeps_errors
from neuron_tools.frontends.torch_trace.ranked_program import RankedCall
from neuron_tools.frontends.torch_trace.ranked_values import for_each_rank
from neuron_tools.frontends.torch_trace.shapes import describe, shape_of
from neuron_tools.neff.generation import check_generation

Named = Mapping[str, torch.Tensor]
Tensors = list[torch.Tensor]
_library = torch.library.Library("neuron_tools", "FRAGMENT")
_library.define(
    "run_ranks(Tensor artifact, str digest, Dict(str, Tensor)[] states, Dict(str, Tensor)[] weights, "
    "Tensor[][] inputs, int first_rank, int ranks, bool on_device) -> Tensor[][]"
)
_library.define("example_results(Tensor artifact, str digest) -> Tensor[]")
_cores = threading.Lock()
"""A core runs one program at a time, and states have their next values before the next one begins."""


def example_results(artifact: torch.Tensor, digest: str) -> Tensors:
    """Zeros of the shapes that a program gives its caller."""
    shapes = RankedCall.of(load(artifact, digest).neff).result_shapes
    return [torch.zeros(shape_of(text), dtype=getattr(torch, text[: text.index("[")])) for text in shapes]


@dataclass(frozen=True)
class RankCall:
    """What one rank is called with.

    Attributes:
        artifact: Its archive's bytes, uint8.
        digest: Stands for them.
        states: By name: they get their next values.
        weights: By name.
        inputs: Of the call.
    """

    artifact: torch.Tensor
    digest: str
    states: Named
    weights: Named
    inputs: Sequence[torch.Tensor]


def run_together(calls: Sequence[RankCall], on_device: bool = False) -> list[Tensors]:
    """Run all ranks of a model, the first on core 0.

    Args:
        calls: Of each rank.
        on_device: Leave the results on the cores, so that the host does not wait for them.

    Returns:
        Each rank's results.

    Raises:
        TraceError: There are more or fewer ranks than were traced, there are too few cores, a weight or state
            is missing or of another shape, or the inputs are of other shapes or types.
        NeffError: The archive is for another generation of NeuronCores.
    """
    check_cores(range(len(calls)))
    brought = [_Rank(rank, call) for rank, call in enumerate(calls)]
    with _cores:
        if executables.current() is None:
            return _values(brought)
        for rank in brought:
            check_generation(rank.loaded.neff.program.target, torch.neuron.get_device_capability()[0])
        return _timed(brought, on_device)


@keeps_errors
def run_ranks(
    artifact: torch.Tensor,
    digest: str,
    states: Sequence[Named],
    weights: Sequence[Named],
    inputs: Sequence[Sequence[torch.Tensor]],
    first_rank: int,
    ranks: int,
    on_device: bool,
) -> list[Tensors]:
    """Run a program on all ranks.

    Args:
        artifact: The archive's bytes, uint8.
        digest: Stands for them.
        states: Of each rank, by name, on its core: they get their next values.
        weights: Of each rank, by name, on its core.
        inputs: Of each rank.
        first_rank: The first rank of this process.
        ranks: Of the whole job.
        on_device: Leave the results on the cores, so that the host does not wait for them.

    Returns:
        Each rank's results.

    Raises:
        TraceError: The ranks are not all here or more or fewer than were traced, there are too few cores, a
            weight or state is missing or of another shape, or the inputs are of other shapes or types.
        NeffError: The archive is for another generation of NeuronCores.
    """
    if first_rank or len(inputs) != ranks:
        raise TraceError(
            f"{len(inputs)} of {ranks} ranks are in this process: ranks of one model on several machines are "
            "not simulated; let local_ranks_size be world_size."
        )
    called = [
        RankCall(artifact, digest, _at(states, rank), _at(weights, rank), own)
        for rank, own in enumerate(inputs)
    ]
    return run_together(called, on_device)


_library.impl("run_ranks", run_ranks, "CompositeExplicitAutograd")
_library.impl("example_results", example_results, "CompositeExplicitAutograd")


def _at(of_ranks: Sequence[Named], rank: int) -> Named:
    return of_ranks[rank] if rank < len(of_ranks) else {}


class _Rank:
    """What one rank brings to a call.

    Args:
        number: Of the rank.
        given: What it is called with.
    """

    def __init__(self, number: int, given: RankCall) -> None:
        self.loaded, self.digest = load(given.artifact, given.digest), given.digest
        self._call = call = RankedCall.of(self.loaded.neff)
        check_inputs(self.loaded, given.inputs, len(call.states))
        self.number, self.inputs = number, [value.detach() for value in given.inputs]
        shapes = (*call.weight_shapes, *self.loaded.inputs[: len(call.states)])
        expected = dict(zip((*call.weights, *call.states), shapes))
        held = {**given.states, **given.weights}
        self._weights = [self._find(name, held, expected[name]) for name in call.weights]
        held = {**given.weights, **given.states}
        self._states = [self._find(name, held, expected[name]) for name in call.states]
        for name, state in zip(call.states, self._states):
            if not state.is_contiguous():
                raise TraceError(
                    f"The state {name} of rank {number} is a cut whose elements do not lie side by side, "
                    "which Neuron's runtime cannot take: cut along the first axis, or pass it whole."
                )

    def _find(self, name: str, held: Named, expected: str) -> torch.Tensor:
        if name not in held:
            raise TraceError(
                f"Rank {self.number} has no weight or state {name}: pass each rank's checkpoint with all "
                "weights of the model that was traced, and its states."
            )
        if held[name].shape != shape_of(expected):
            raise TraceError(
                f"{name} of rank {self.number} is {describe(held[name])}, and the model was traced for "
                f"{expected}: pass what this rank has of it, cut for as many ranks as were traced."
            )
        return held[name]

    def arguments(self) -> Tensors:
        """On the host; those of the device are not copied."""
        from neuron_tools.device.distributed.host_values import host_alias

        return [host_alias(value) for value in (*self._weights, *self._states, *self.inputs)]

    def taken(self, results: Sequence[torch.Tensor]) -> Tensors:
        """What the caller gets of the program's results; states get their next values."""
        from neuron_tools.device.distributed.host_values import host_alias

        states = [host_alias(state) for state in self._states]
        written = {state.untyped_storage().data_ptr() for state in states}
        made = [
            value.clone() if value.untyped_storage().data_ptr() in written else value for value in results
        ]  # a program may return a state as it was, or as the next value of another one
        for state, number in zip(states, self._call.next_values):
            state.copy_(made[number])
        return [made[number] for number in self._call.results]


def _values(brought: Sequence[_Rank]) -> list[Tensors]:
    def compute(number: int) -> Sequence[torch.Tensor]:
        rank = brought[number]
        with torch.no_grad():
            computed: Sequence[torch.Tensor] = rank.loaded.values(*rank.loaded.weights, *rank.arguments())
            return computed

    made = for_each_rank(compute, len(brought))
    return [rank.taken(results) for rank, results in zip(brought, made)]


def _timed(brought: Sequence[_Rank], on_device: bool) -> list[Tensors]:
    """Run with a capture: no rank begins before all can: its collectives wait for the others."""
    from neuron_tools.device import native

    provider = executables.current()
    assert provider is not None
    held = [value.to(f"neuron:{rank.number}", non_blocking=True) for rank in brought for value in rank.inputs]
    with native.unrecorded():
        ready = [provider.executable_of(rank.loaded.neff.program, rank.digest) for rank in brought]
        values = _values(brought)
        results = [[value.to(f"neuron:{rank}") for value in own] for rank, own in enumerate(values)]
    run_at_once(ready, brought[0].loaded.neff.program.name)
    del held
    if on_device:
        return results
    return [[result.cpu() for result in results[0]], *values[1:]]
