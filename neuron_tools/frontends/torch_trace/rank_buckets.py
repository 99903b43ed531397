"""One rank of a model that was traced for several shapes: each weight once, a program for each shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from neuron_tools.frontends.torch_trace.buckets import (
    ChoosingForward,
    check_shared,
    chooses_buckets,
    define_forward,
)
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.rank_models import RANK, VALUES, RankProgram, own_values
from neuron_tools.frontends.torch_trace.ranks import example_results
from neuron_tools.frontends.torch_trace.shapes import describe, shape_of
from neuron_tools.frozen import frozen


@frozen
class RankBuckets:
    """How a bucket is chosen, and what the buckets share.

    Attributes:
        kernel: Takes a list of tensors; returns them padded, and the number of the bucket.
        constants: Passed to the kernel after the tensors.
        states: Initial values of the states that all buckets share; None: each has its own.
        cut: Cuts the shared states for a bucket, of the shapes of each bucket's, the states and the kernel's
            number; None: every bucket takes them whole.
        order: For each bucket, which of its states each shared one is, counted by the results that are their
            next values.
    """

    kernel: Callable[..., Any]
    constants: Sequence[Any]
    states: Sequence[torch.Tensor] | None = None
    cut: Callable[..., Any] | None = None
    order: Sequence[Sequence[int]] = ()


class _Places(torch.nn.Module):
    """What a library loads: TorchScript keeps a list of modules as none that Python could pick from."""

    def __init__(self, programs: Sequence[RankProgram]) -> None:
        super().__init__()
        self.models = [getattr(program, RANK) for program in programs]


class _Packed(torch.nn.Module):
    """Puts a call's results together."""

    def __init__(self, packed: Callable[[Any], Any]) -> None:
        super().__init__()
        self._packed = packed

    def forward(self, results: list[torch.Tensor]) -> Any:
        return self._packed(results)


class _RankBuckets(torch.nn.Module):
    """A rank's programs as `bucket_0`, ...; the kernel's constants as `constant_0`, ..."""

    def __init__(
        self, programs: Sequence[RankProgram], packed: Callable[[Any], Any], buckets: RankBuckets
    ) -> None:
        super().__init__()
        self.bucket_model_executor = _Places(programs)
        for number, program in enumerate(programs):
            self.add_module(f"bucket_{number}", _values_of(program))
        self.state_shapes = torch.jit.Attribute(_state_shapes(programs, buckets), list[list[list[int]]])
        first = programs[0]
        self.packed = torch.jit.trace(
            _Packed(packed), (example_results(first.artifact, first.digest),), strict=False, check_trace=False
        )
        for number, constant in enumerate(buckets.constants):
            setattr(self, f"constant_{number}", constant)


def _values_of(program: RankProgram) -> torch.nn.Module:
    """The same weights, states and archive without a method, which TorchScript could not compile."""
    held = torch.nn.Module()
    for name, value in program.named_buffers():
        held.register_buffer(name, value)
    return held


def rank_bucket_model(
    archives: Sequence[bytes],
    values: Mapping[str, torch.Tensor],
    packed: Callable[[Any], Any],
    buckets: RankBuckets,
) -> torch.jit.ScriptModule:
    """A rank of a model with a compiled program for each bucket.

    Args:
        archives: The programs.
        values: The rank's weights and states by name; all buckets have the same weights.
        packed: Puts a call's results together.
        buckets: How one is chosen.

    Returns:
        A module whose `bucket_model_executor.models` `load_rank` takes, one for each bucket.

    Raises:
        TraceError: TorchScript cannot compile a function of `buckets`, or a bucket's states have other shapes
            than those that it gets.
    """
    own = own_values(values)
    shared = None if buckets.states is None else [value.detach().cpu().clone() for value in buckets.states]
    programs = [RankProgram(archive, number) for number, archive in enumerate(archives)]
    for number, program in enumerate(programs):
        program.keep({**own, **_states(number, program, own, shared, buckets)})
    inputs = [program.given_shapes[len(program.call.states) :] for program in programs]
    shapes = [[[*shape_of(text)] for text in each] for each in inputs]
    calls = [_call(number, programs, buckets) for number in range(len(programs))]
    with chooses_buckets(buckets.kernel):
        script = torch.jit.script(_RankBuckets(programs, packed, buckets))
        forward = ChoosingForward(shapes, len(buckets.constants), calls)
        define_forward(script, forward, buckets.kernel, buckets.cut)
    return script


def _states(
    number: int,
    program: RankProgram,
    own: Mapping[str, torch.Tensor],
    shared: Sequence[torch.Tensor] | None,
    buckets: RankBuckets,
) -> dict[str, torch.Tensor]:
    """A bucket's states by name."""
    names = program.call.states
    if shared is not None:
        places = _places(number, program, buckets)
        if buckets.cut is None:
            check_shared(number, [program.given_shapes[place] for place in places], [*map(describe, shared)])
        return {names[place]: value for place, value in zip(places, shared)}
    expected = dict(zip(names, program.given_shapes))
    for name in names:
        if describe(own[name]) != expected[name]:
            raise TraceError(
                f"Bucket {number} has the state {name} as {expected[name]}, and another has it as "
                f"{describe(own[name])}: pass the largest in shared_state_buffer, and cut it in "
                "shared_state_buffer_preprocessor."
            )
    return {name: own[name].clone() for name in names}


def _places(number: int, program: RankProgram, buckets: RankBuckets) -> list[int]:
    """Which of a bucket's states each shared one is: both are told by the result that is their next value."""
    by_result = sorted(range(len(program.call.states)), key=program.call.next_values.__getitem__)
    return [by_result[place] for place in buckets.order[number]]


def _call(number: int, programs: Sequence[RankProgram], buckets: RankBuckets) -> list[str]:
    """The lines that run one bucket."""
    program, name = programs[number], f"self.bucket_{number}"
    weights = ", ".join(f"{name}.{VALUES[0]}{i}" for i in range(len(program.call.weights)))
    states = [f"{name}.{VALUES[1]}{i}" for i in range(len(program.call.states))]
    lines = []
    if buckets.cut is not None:
        places = _places(number, program, buckets)
        whole = ", ".join(states[place] for place in places)
        lines = [f"cut = cut_states(self.state_shapes, [{whole}], number)"]
        states = [f"cut[{places.index(place)}]" for place in range(len(states))]
    called = f"{name}.artifact, {program.digest!r}, [{weights}], [{', '.join(states)}], padded"
    place = f"self.bucket_model_executor.models[{number}]"
    return [*lines, f"return self.packed(torch.ops.neuron_tools.run_rank({called}, {place}))"]


def _state_shapes(programs: Sequence[RankProgram], buckets: RankBuckets) -> list[list[list[int]]]:
    """Of each bucket's states, in the order of the shared ones."""
    return [
        [[*shape_of(program.given_shapes[place])] for place in _places(number, program, buckets)]
        for number, program in enumerate(programs)
    ]
