"""The operator that a traced model calls: `neuron_tools::execute` runs one `.neff` archive.

Importing this module registers it, which `torch.jit.load` of a traced model needs.
"""

from __future__ import annotations

import io
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_trace.compiling import SIGNATURE, VALUES, describe
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.neff import Neff

MOST_LOADED = 64
"""Artifacts kept in memory; the one that was not used for the longest time goes first."""

_library = torch.library.Library("neuron_tools", "FRAGMENT")
_library.define("execute(Tensor artifact, str digest, Tensor[] inputs) -> Tensor[]")


@dataclass(frozen=True)
class LoadedArtifact:
    """An artifact that is ready to run.

    Attributes:
        values: The TorchScript module that computes its values.
        inputs: Element type and shape of each input.
    """

    neff: Neff
    values: Any
    inputs: tuple[str, ...]


_loaded: OrderedDict[str, LoadedArtifact] = OrderedDict()


def execute(artifact: torch.Tensor, digest: str, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run one artifact: values on the host, time (while a capture runs) on the simulated device.

    Args:
        artifact: The archive's bytes, uint8.
        digest: Stands for them.
        inputs: One tensor per input, of the shapes it was compiled for.

    Raises:
        TraceError: The inputs are of other shapes or element types.
    """
    loaded = _load(artifact, digest)
    _check(loaded, inputs)
    provider = executables.current()
    on_host = [value.detach().cpu() for value in inputs]
    if provider is None:
        return [*_compute(loaded, on_host)]
    return _recorded(provider, loaded, digest, inputs, on_host)


_library.impl("execute", execute, "CompositeExplicitAutograd")


def _compute(loaded: LoadedArtifact, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        results: tuple[torch.Tensor, ...] = loaded.values(*inputs)
    return results


def _recorded(
    provider: executables.ExecutableProvider,
    loaded: LoadedArtifact,
    digest: str,
    inputs: Sequence[torch.Tensor],
    on_host: Sequence[torch.Tensor],
) -> list[torch.Tensor]:
    """Copy in, run, copy out; the copies and the execution are recorded, the host's arithmetic is not."""
    from neuron_tools.device import native

    program = loaded.neff.program
    held = [value.to("neuron") for value in inputs]
    native.pause_clock()
    previous = native.suppress(True)
    try:
        executable, duration_ns = provider.executable_of(program, digest)
        results = [result.to("neuron") for result in _compute(loaded, on_host)]
    finally:
        native.suppress(previous)
        native.resume_clock()
    native.run_graph(executable, duration_ns, native.intern_name(program.name))
    del held
    return [result.cpu() for result in results]


def _load(artifact: torch.Tensor, digest: str) -> LoadedArtifact:
    if digest not in _loaded:
        neff = Neff.from_bytes(artifact.numpy().tobytes(), "The traced model's artifact")
        values = torch.jit.load(io.BytesIO(neff.attachments[VALUES]))
        inputs = tuple(json.loads(neff.attachments[SIGNATURE]))
        _loaded[digest] = LoadedArtifact(neff, values, inputs)
        while len(_loaded) > MOST_LOADED:
            _loaded.popitem(last=False)
    _loaded.move_to_end(digest)
    return _loaded[digest]


def _check(loaded: LoadedArtifact, inputs: Sequence[torch.Tensor]) -> None:
    found = tuple(map(describe, inputs))
    if found != loaded.inputs:
        raise TraceError(
            f"The model was traced for inputs {', '.join(loaded.inputs)}, not {', '.join(found)}: "
            "call it with inputs of these types and shapes, or trace it for the others."
        )
