"""Whether an architecture runs on the device as it does on the CPU: a training step and a generated text."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

import neuron_tools
from benchmarks.zoo.architectures import Architecture
from benchmarks.zoo.case import Inputs, outputs
from benchmarks.zoo.training import Tensors, largest_difference
from neuron_profile.analysis.hotspots import find_hotspots
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

NEW_TOKENS = 3
TOLERANCE = 1e-3
"""Of float32 values against the CPU's: attention is summed in another order."""
NATIVE_SHARE = 0.999
"""Of the device time."""
_NOT_MODEL_INPUTS = ("labels",)
_COSTS = """
SELECT count(*) AS count, coalesce(sum(end_ts - start_ts) FILTER (hlo_opcode = 'custom_call'), 0) AS custom_ns
FROM HloInstruction
"""
_CUSTOM = (
    "SELECT DISTINCT framework_name AS name FROM HloInstruction WHERE hlo_opcode = 'custom_call' ORDER BY ALL"
)
_REFUSED = "SELECT count(*) AS count FROM Warning WHERE message LIKE '%could not be compiled%'"


@frozen
class Conformance:
    """One architecture in one mode.

    Attributes:
        name: Of the architecture.
        mode: "eager" or "compiled".
        failure: What went wrong, in one line; empty where it ran to its end.
        difference: Of loss, outputs and gradients from the CPU's, relative to the largest value of each.
        same_tokens: Whether the generated tokens are the CPU's; None where nothing is generated.
        native_share: Part of the device time in natively lowered operations, 0 to 1.
        custom_calls: Operators without a native lowering.
        refused: Operators and graphs that could not be compiled at all.
        operations: HLO operations executed.
        device_us: Simulated device time.
    """

    name: str
    mode: str
    failure: str = ""
    difference: float = 0.0
    same_tokens: bool | None = None
    native_share: float = 0.0
    custom_calls: tuple[str, ...] = ()
    refused: int = 0
    operations: int = 0
    device_us: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether it ran, with the CPU's values, natively."""
        right = self.difference <= TOLERANCE and self.same_tokens is not False
        return not self.failure and right and not self.refused and self.native_share >= NATIVE_SHARE


def conformance(architecture: Architecture, *, compiled: bool) -> Conformance:
    """Run an architecture on the CPU and, captured, on the device.

    Args:
        architecture: Which.
        compiled: Whether `torch.compile` compiles the model, for training and for generating.
    """
    mode = "compiled" if compiled else "eager"
    torch._dynamo.reset()
    expected = _computed(architecture, "cpu")
    with tempfile.TemporaryDirectory() as folder:
        with neuron_tools.profile(Path(folder) / "run.nprof", host_clock="fixed") as run:
            found = _computed(architecture, "neuron", compiled=compiled)
        with run.open() as profile:
            return _judged(architecture.name, mode, expected, found, profile)


def _computed(architecture: Architecture, device: str, *, compiled: bool = False) -> Tensors:
    """Loss, prediction, gradients and generated tokens, by name, brought to the CPU."""
    model, inputs = architecture.case.make(device)
    loss, prediction = outputs((torch.compile(model) if compiled else model)(**inputs))
    loss.backward()
    values = {name: _gradient(parameter) for name, parameter in model.named_parameters()}
    values |= {"loss": loss.detach(), "prediction": prediction.detach()}
    if architecture.generates:
        values["tokens"] = _generated(model.eval(), inputs, compiled=compiled)
    return {name: value.cpu() for name, value in values.items()}


def _gradient(parameter: nn.Parameter) -> torch.Tensor:
    """Zeros where nothing reached it: a compiled graph gives them to what it computes in vain."""
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


@torch.no_grad()
def _generated(model: nn.Module, inputs: Inputs, *, compiled: bool) -> torch.Tensor:
    given = {name: value for name, value in inputs.items() if name not in _NOT_MODEL_INPUTS}
    if compiled:
        model.forward = torch.compile(model.forward)
    tokens: torch.Tensor = model.generate(**given, max_new_tokens=NEW_TOKENS, do_sample=False, num_beams=1)
    return tokens


def _judged(name: str, mode: str, expected: Tensors, found: Tensors, profile: Profile) -> Conformance:
    device_ns = find_hotspots(profile).device_ns
    costs: Mapping[str, int] = profile.query(_COSTS).to_pylist()[0]
    tokens = [torch.equal(values["tokens"], found["tokens"]) for values in (expected,) if "tokens" in values]
    return Conformance(
        name=name,
        mode=mode,
        difference=largest_difference(_real(expected), _real(found)),
        same_tokens=tokens[0] if tokens else None,
        native_share=1 - int(costs["custom_ns"]) / max(device_ns, 1),
        custom_calls=tuple(row["name"] for row in profile.query(_CUSTOM).to_pylist()),
        refused=int(profile.query(_REFUSED).to_pylist()[0]["count"]),
        operations=int(costs["count"]),
        device_us=device_ns / 1e3,
    )


def _real(values: Tensors) -> Tensors:
    return {name: value for name, value in values.items() if value.is_floating_point()}
