"""The operators that a traced model calls: `neuron_tools::execute` runs one `.neff` archive.

`execute_with` runs one whose weights are not in it: they stay on the device from call to call. So do the
states of `execute_states`, inputs whose next values are among the results.

Importing this module registers it, which `torch.jit.load` of a traced model needs.
"""

from __future__ import annotations

import io
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch

from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_trace import loading, plain_errors
from neuron_tools.frontends.torch_trace.clients import CLIENTS
from neuron_tools.frontends.torch_trace.compiling import SIGNATURE, VALUES
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.inline_weights import inline_weights, read_artifact
from neuron_tools.frontends.torch_trace.placement import next_core
from neuron_tools.frontends.torch_trace.plain_errors import keeps_errors
from neuron_tools.frontends.torch_trace.shapes import describe
from neuron_tools.frontends.torch_trace.streaming import run_stages
from neuron_tools.neff import Neff
from neuron_tools.neff.generation import check_generation

MOST_LOADED = 64
"""Artifacts kept in memory; the one that was not used for the longest time goes first."""

_library = torch.library.Library("neuron_tools", "FRAGMENT")
_library.define("execute(Tensor artifact, str digest, Tensor[] inputs) -> Tensor[]")
_library.define("execute_with(Tensor artifact, str digest, Tensor[] weights, Tensor[] inputs) -> Tensor[]")
_library.define(
    "execute_states(Tensor artifact, str digest, Tensor[] weights, Tensor(a!)[] inputs, int[] states, "
    "int[] results) -> Tensor[]"
)


@dataclass(frozen=True)
class LoadedArtifact:
    """An artifact that is ready to run.

    Attributes:
        values: The TorchScript module that computes its values, of weights and inputs.
        weights: Those that are in the archive.
        inputs: Element type and shape of each input.
        resident: Weights on the device, by position and device, each with the version that was copied; states
            by their position among the inputs, below zero.
    """

    neff: Neff
    values: Any
    weights: Sequence[torch.Tensor]
    inputs: tuple[str, ...]
    resident: dict[tuple[int, int], tuple[tuple[int, int], torch.Tensor]] = field(default_factory=dict)


_loaded: OrderedDict[str, LoadedArtifact] = OrderedDict()
_kept_on_device: ContextVar[bool] = ContextVar("results_on_device", default=False)
_known_results: ContextVar[Mapping[str, Sequence[torch.Tensor]] | None] = ContextVar(
    "known_results", default=None
)


def execute(artifact: torch.Tensor, digest: str, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run one artifact: values on the host, time (while a capture runs) on the simulated device.

    Args:
        artifact: The archive's bytes, uint8.
        digest: Stands for them.
        inputs: One tensor per input, of the shapes it was compiled for.

    Raises:
        TraceError: The inputs are of other shapes or element types.
    """
    return execute_with(artifact, digest, (), inputs)


def execute_with(
    artifact: torch.Tensor, digest: str, weights: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Run one artifact with weights that are not in it.

    Args:
        artifact: The archive's bytes, uint8.
        digest: Stands for them.
        weights: In the archive's order; they are copied to the device when they are new.
        inputs: One tensor per input, of the shapes it was compiled for.

    Raises:
        TraceError: The inputs are of other shapes or element types.
        NeffError: The archive is for another generation of NeuronCores.
    """
    return execute_states(artifact, digest, weights, inputs, (), ())


@keeps_errors
def execute_states(
    artifact: torch.Tensor,
    digest: str,
    weights: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    states: Sequence[int],
    results: Sequence[int],
) -> list[torch.Tensor]:
    """Run one artifact that leaves states for the next call.

    Args:
        artifact: The archive's bytes, uint8.
        digest: Stands for them.
        weights: Those that are not in the archive, in its order; copied to the device when they are new.
        inputs: One tensor per input, of the shapes it was compiled for. States are written.
        states: Which inputs are states: they stay on the device; what the program wrote is copied there.
        results: For each state, which result is its next value.

    Returns:
        The results; those that became states are empty.

    Raises:
        TraceError: The inputs are of other shapes or element types.
        NeffError: The archive is for another generation of NeuronCores.
    """
    if (known := results_known_of(digest)) is not None:
        return known
    loaded = load(artifact, digest)
    check_inputs(loaded, inputs)
    kept = dict(zip(states, results))
    if executables.current() is None:
        computed = [*_compute(loaded, [*weights, *(value.detach().cpu() for value in inputs)])]
        for position, number in kept.items():
            computed[number] = _written(inputs[position], computed[number])
        return computed
    check_generation(loaded.neff.program.target, torch.neuron.get_device_capability()[0])
    with next_core(artifact):
        return _on_device(loaded, digest, weights, inputs, kept)


plain_errors.install()
loading.install()
_library.impl("execute", execute, "CompositeExplicitAutograd")
_library.impl("execute_with", execute_with, "CompositeExplicitAutograd")
_library.impl("execute_states", execute_states, "CompositeExplicitAutograd")


def _written(state: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Give a state its next value; returns what stands for the result."""
    with torch.no_grad():
        state.copy_(value)
    return state.new_empty(0)


def _on_device(
    loaded: LoadedArtifact,
    digest: str,
    weights: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    kept: Mapping[int, int],
) -> list[torch.Tensor]:
    """Run on the current core, among other threads that call models."""
    provider = executables.current()
    assert provider is not None
    on_host = [value.detach().cpu() for value in inputs]
    shared = CLIENTS.enter()
    try:
        held = [
            _resident(loaded, ~i, value) if i in kept else value.to("neuron", non_blocking=True)
            for i, value in enumerate(inputs)
        ]
        held += [_resident(loaded, index, weight) for index, weight in enumerate(weights)]
        results = _recorded(provider, loaded, digest, [*weights, *on_host])
        core = results[0].device.index if results else 0
        for position, number in kept.items():
            results[number] = _stay(loaded, position, inputs[position], results[number])
        del held
        if _kept_on_device.get():
            return results
        if shared and results:
            _wait_with_others(core)
        return [result.cpu() for result in results]
    finally:
        CLIENTS.leave()


def _stay(loaded: LoadedArtifact, position: int, state: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Let a result stay on the device as a state's next value; the host's copy of it costs no time."""
    from neuron_tools.device import native

    with native.unrecorded():
        left = _written(state, result.cpu())
    loaded.resident[~position, int(torch.neuron.current_device())] = (_version(state), result)
    return left


def _wait_with_others(core: int) -> None:
    from neuron_tools.device import native

    issued = native.issue_collective(core, False)
    if issued is not None:
        CLIENTS.wait(issued[1])


@contextmanager
def results_on_device() -> Iterator[None]:
    """Leave results of traced models on the device in the block, so that the host waits for none of them."""
    token = _kept_on_device.set(True)
    try:
        yield
    finally:
        _kept_on_device.reset(token)


@contextmanager
def known_results(results: Mapping[str, Sequence[torch.Tensor]]) -> Iterator[None]:
    """In the block, artifacts of these digests are not run but give these: a trace needs no values."""
    token = _known_results.set(results)
    try:
        yield
    finally:
        _known_results.reset(token)


def results_known_of(digest: str) -> list[torch.Tensor] | None:
    """What stands for an artifact's results in such a block; None where it runs."""
    known = (_known_results.get() or {}).get(digest)
    return None if known is None else [result.clone() for result in known]


def _resident(loaded: LoadedArtifact, index: int, weight: torch.Tensor) -> torch.Tensor:
    """A weight or state on the device; copied when it is new or was written by the program."""
    key = (index, int(torch.neuron.current_device()))
    version = _version(weight)
    if key not in loaded.resident or loaded.resident[key][0] != version:
        shared = _left_by_others(key[1], version) if index < 0 else None
        loaded.resident[key] = (version, weight.to("neuron") if shared is None else shared)
    return loaded.resident[key][1]


def _left_by_others(core: int, version: tuple[int, int]) -> torch.Tensor | None:
    """A state as the artifact of another bucket, which shares it, left it on a core."""
    left = (item for loaded in _loaded.values() for item in loaded.resident.items())
    return next((value for (_, where), (known, value) in left if (where, known) == (core, version)), None)


def _version(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor._version


def _compute(loaded: LoadedArtifact, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        results: tuple[torch.Tensor, ...] = loaded.values(*loaded.weights, *inputs)
    return results


def _recorded(
    provider: executables.ExecutableProvider,
    loaded: LoadedArtifact,
    digest: str,
    on_host: Sequence[torch.Tensor],
) -> list[torch.Tensor]:
    """Run: the execution is recorded, the host's arithmetic is not. The last core has the results."""
    from neuron_tools.device import native

    if loaded.neff.stages:
        last = torch.device("neuron", run_stages(provider, loaded.neff, digest))
        with native.unrecorded():
            return [result.to(last) for result in _compute(loaded, on_host)]
    program = loaded.neff.program
    with native.unrecorded():
        executable, duration_ns = provider.executable_of(program, digest)
        results = [result.to("neuron") for result in _compute(loaded, on_host)]
    native.run_graph(executable, duration_ns, native.intern_name(program.name))
    return results


def load(artifact: torch.Tensor, digest: str) -> LoadedArtifact:
    """The artifact; it is read where it is new."""
    if digest not in _loaded:
        neff = read_artifact(artifact)
        values = torch.jit.load(io.BytesIO(neff.attachments[VALUES]))
        inputs = tuple(json.loads(neff.attachments[SIGNATURE]))
        _loaded[digest] = LoadedArtifact(neff, values, inline_weights(neff), inputs)
        while len(_loaded) > MOST_LOADED:
            _loaded.popitem(last=False)
    _loaded.move_to_end(digest)
    return _loaded[digest]


def check_inputs(loaded: LoadedArtifact, inputs: Sequence[torch.Tensor], skipped: int = 0) -> None:
    """Refuse inputs that the artifact was not compiled for.

    Args:
        loaded: The artifact.
        inputs: The inputs.
        skipped: How many of its inputs stand before them.

    Raises:
        TraceError: They are of other shapes or element types.
    """
    found, expected = tuple(map(describe, inputs)), loaded.inputs[skipped:]
    if found != expected:
        raise TraceError(
            f"The model was traced for inputs {', '.join(expected)}, not {', '.join(found)}: "
            "call it with inputs of these types and shapes, or trace it for the others."
        )
