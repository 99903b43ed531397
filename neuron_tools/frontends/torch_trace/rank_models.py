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
from neuron_tools.frontends.torch_trace.shapes import describe
from neuron_tools.neff.files import mapped

RANK = "model"
"""Buffer: where a rank is, see `run_rank`."""
VALUES = ("weight_", "state_")
"""What names of buffers with weights, and with states, begin with."""
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


_Model = tuple[int, int, int]
"""How many ranks it has, which of their buckets it is, and which of the models like that."""
_lock = threading.Lock()
_times_loaded: Counter[_Model] = Counter()
_meetings: dict[_Model, _Meeting] = {}


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
        place: Its rank, how many there are, which bucket of theirs it is, and which model like that it is of;
            -1: it is alone.

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
    rank, ranks, bucket, model = place.tolist()
    return run_together([call])[0] if model < 0 else _meetings[ranks, bucket, model].results(rank, call)


_library.impl("run_rank", run_rank, "CompositeExplicitAutograd")


def load_rank(place: torch.Tensor, start_core: int, core_count: int, rank: int, ranks: int) -> None:
    """Let a rank meet the others: the n-th of each rank that are loaded are one model.

    Args:
        place: The attribute `model` of what `rank_model` gave.
        start_core: Accepted for compatibility: a rank runs on the core of its number.
        core_count: Likewise.
        rank: Of the model.
        ranks: How many there are.

    Raises:
        TraceError: There are fewer NeuronCores than ranks.
    """
    check_cores(range(ranks))
    bucket = int(place[2])
    with _lock:
        number = _times_loaded[rank, ranks, bucket]
        _times_loaded[rank, ranks, bucket] += 1
        _meetings.setdefault((ranks, bucket, number), _Meeting(ranks))
    place.copy_(torch.tensor([rank, ranks, bucket, number]))


def move_values(model: torch.nn.Module, core: int) -> None:
    """Put the weights and states of a rank on a core; those of several buckets are there once.

    Args:
        model: What `rank_model` or `rank_bucket_model` gave, or any other: that keeps what it has.
        core: Of this process.
    """
    moved: dict[tuple[int, str], torch.Tensor] = {}
    for module in model.modules():
        values = dict(module.named_buffers(recurse=False))
        if RANK not in values:
            continue
        for name, value in values.items():
            if name.startswith(VALUES):
                key = value.data_ptr(), describe(value)
                moved[key] = moved[key] if key in moved else value.to(f"neuron:{core}")
                setattr(module, name, moved[key])


class RankProgram(torch.nn.Module):
    """The program of a rank; with its weights and states it is called with tensors.

    Args:
        archive: The compiled model.
        bucket: Which of the rank's programs it is.

    Attributes:
        call: How it is called.
        given_shapes: Element type and shape of each state, then of each input.
    """

    def __init__(self, archive: bytes, bucket: int = 0) -> None:
        super().__init__()
        kept = mapped(lambda file: file.write(archive))
        self.digest = kept.sha256
        self.register_buffer("artifact", torch.frombuffer(kept.memory, dtype=torch.uint8))
        self.register_buffer(RANK, torch.tensor([0, 1, bucket, -1]))
        loaded = load(self.artifact, self.digest)
        self.call, self.given_shapes = RankedCall.of(loaded.neff), loaded.inputs

    def keep(self, values: Mapping[str, torch.Tensor]) -> None:
        """Hold weights and states, as they are, by their names."""
        for kind, names in zip(VALUES, (self.call.weights, self.call.states)):
            for index, name in enumerate(names):
                self.register_buffer(f"{kind}{index}", values[name])

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """The rank's results."""
        counts = zip(VALUES, (len(self.call.weights), len(self.call.states)))
        weights, states = ([getattr(self, f"{kind}{i}") for i in range(count)] for kind, count in counts)
        results: list[torch.Tensor] = torch.ops.neuron_tools.run_rank(
            self.artifact, self.digest, weights, states, [*inputs], self.model
        )
        return results


class _RankModel(RankProgram):
    """A rank that takes and gives what the model does."""

    def __init__(
        self,
        archive: bytes,
        values: Mapping[str, torch.Tensor],
        flat: Callable[[Any], Sequence[torch.Tensor]],
        packed: Callable[[Any], Any],
    ) -> None:
        super().__init__(archive)
        self.keep(own_values(values))
        self._flat, self._packed = flat, packed

    def forward(self, *inputs: Any) -> Any:
        return self._packed(super().forward(*self._flat(inputs)))


def own_values(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies of weights and states on the host, which nobody else writes."""
    return {name: value.detach().cpu().clone() for name, value in values.items()}


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
    rank = _RankModel(archive, values, flat, packed)
    with torch.no_grad(), known_results({rank.digest: example_results(rank.artifact, rank.digest)}):
        script: torch.jit.ScriptModule = torch.jit.trace(
            rank, tuple(example_inputs), strict=False, check_trace=False
        )
    return script
