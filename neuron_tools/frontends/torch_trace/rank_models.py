"""One rank of a model as a TorchScript module of its own; those that were loaded together run together.

Importing this module registers `neuron_tools::run_rank`, which `torch.jit.load` of such a module needs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from neuron_tools.frontends.torch_trace.operator import known_results, load, results_known_of
from neuron_tools.frontends.torch_trace.placement import check_cores
from neuron_tools.frontends.torch_trace.plain_errors import keeps_errors
from neuron_tools.frontends.torch_trace.ranked_program import RankedCall
from neuron_tools.frontends.torch_trace.ranks import RankCall, Tensors, example_results, run_together
from neuron_tools.neff.files import mapped

_library = torch.library.Library("neuron_tools", "FRAGMENT")
_library.define(
    "run_rank(Tensor artifact, str digest, Tensor[] weights, Tensor(a!)[] states, Tensor[] inputs, "
    "Tensor place) -> Tensor[]"
)


class _Meeting:
    """Where the ranks of one model bring what they are called with; one of them runs all."""

    def __init__(self, ranks: int) -> None:
        self._barrier = threading.Barrier(ranks)
        self._calls: dict[int, RankCall] = {}
        self._made: dict[int, Tensors] = {}
        self._failure: Exception | None = None

    def results(self, rank: int, call: RankCall) -> Tensors:
        """What a rank gets, when all have come."""
        self._calls[rank] = call
        if self._barrier.wait() == 0:
            self._run()
        self._barrier.wait()
        if self._failure is not None:
            raise self._failure
        return self._made.pop(rank)

    def _run(self) -> None:
        """A failure is that of each rank: nobody waits for one that does not come."""
        self._failure = None
        try:
            made = run_together([self._calls[rank] for rank in sorted(self._calls)])
            self._made = dict(enumerate(made))
        except Exception as failure:
            self._failure = failure
        self._calls.clear()


_lock = threading.Lock()
_times_loaded: Counter[tuple[int, int]] = Counter()
_meetings: dict[tuple[int, int], _Meeting] = {}


@keeps_errors
def run_rank(
    artifact: torch.Tensor,
    digest: str,
    weights: Sequence[torch.Tensor],
    states: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    place: torch.Tensor,
) -> list[torch.Tensor]:
    """Run one rank of a model, together with the others, which other threads call.

    Args:
        artifact: The archive's bytes, uint8.
        digest: Stands for them.
        weights: In the archive's order.
        states: Likewise; they get their next values.
        inputs: Of the call.
        place: Its rank, how many there are, and which model of so many ranks it is of; 0, 1, -1: it is alone.

    Returns:
        The rank's results.

    Raises:
        TraceError: The ranks are more or fewer than were traced, or weights, states or inputs are of other
            shapes or types.
        NeffError: The archive is for another generation of NeuronCores.
    """
    if (known := results_known_of(digest)) is not None:
        return known
    names = RankedCall.of(load(artifact, digest).neff)
    call = RankCall(
        artifact, digest, dict(zip(names.states, states)), dict(zip(names.weights, weights)), inputs
    )
    rank, ranks, model = place.tolist()
    return run_together([call])[0] if model < 0 else _meetings[ranks, model].results(rank, call)


_library.impl("run_rank", run_rank, "CompositeExplicitAutograd")


def load_rank(model: Any, start_core: int, core_count: int, rank: int, ranks: int) -> None:
    """Put a rank's weights and states on its core; the n-th of each rank that are loaded are one model.

    Args:
        model: The attribute `model` of what `rank_model` gave.
        start_core: Accepted for compatibility: a rank runs on the core of its number.
        core_count: Likewise.
        rank: Of the model.
        ranks: How many there are.

    Raises:
        TraceError: There are fewer NeuronCores than ranks.
    """
    check_cores(range(ranks))
    with _lock:
        number = _times_loaded[rank, ranks]
        _times_loaded[rank, ranks] += 1
        _meetings.setdefault((ranks, number), _Meeting(ranks))
    for name, value in [*model.named_buffers(recurse=False)]:
        if name.startswith(("weight_", "state_")):
            setattr(model, name, value.to(f"neuron:{rank}"))
    model.place.copy_(torch.tensor([rank, ranks, number]))


class _RankProgram(torch.nn.Module):
    """The program of a rank, with its weights and states.

    Args:
        archive: The compiled model.
        values: Weights and states by name.
    """

    def __init__(self, archive: bytes, values: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        kept = mapped(lambda file: file.write(archive))
        self.digest = kept.sha256
        self.register_buffer("artifact", torch.frombuffer(kept.memory, dtype=torch.uint8))
        self.register_buffer("place", torch.tensor([0, 1, -1]))
        call = RankedCall.of(load(self.artifact, self.digest).neff)
        self._weights = self._keep("weight", call.weights, values)
        self._states = self._keep("state", call.states, values)

    def _keep(self, kind: str, names: Sequence[str], values: Mapping[str, torch.Tensor]) -> list[str]:
        """Names of new buffers with these values."""
        for index, name in enumerate(names):
            self.register_buffer(f"{kind}_{index}", values[name].detach().cpu().clone())
        return [f"{kind}_{index}" for index in range(len(names))]

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        weights, states = ([getattr(self, name) for name in names] for names in (self._weights, self._states))
        results = torch.ops.neuron_tools.run_rank(
            self.artifact, self.digest, weights, states, [*inputs], self.place
        )
        return tuple(results)


class _RankModel(torch.nn.Module):
    """A rank that takes and gives what the model does."""

    def __init__(
        self, model: _RankProgram, flat: Callable[[Any], Sequence[torch.Tensor]], packed: Callable[[Any], Any]
    ) -> None:
        super().__init__()
        self.model = model
        self._flat, self._packed = flat, packed

    def forward(self, *inputs: Any) -> Any:
        return self._packed(self.model(*self._flat(inputs)))


def rank_model(
    archive: bytes,
    values: Mapping[str, torch.Tensor],
    flat: Callable[[Any], Sequence[torch.Tensor]],
    packed: Callable[[Any], Any],
    example_inputs: Sequence[Any],
) -> torch.jit.ScriptModule:
    """A rank of a model that was compiled for several, as TorchScript keeps it.

    Args:
        archive: The compiled model.
        values: The rank's weights and states by name.
        flat: Gives the tensors of a call's inputs.
        packed: Puts a call's results together.
        example_inputs: Those that it was traced with.

    Returns:
        A module whose attribute `model` `load_rank` takes; without that it runs alone.
    """
    rank = _RankProgram(archive, values)
    with torch.no_grad(), known_results({rank.digest: example_results(rank.artifact, rank.digest)}):
        script: torch.jit.ScriptModule = torch.jit.trace(
            _RankModel(rank, flat, packed), tuple(example_inputs), strict=False, check_trace=False
        )
    return script
