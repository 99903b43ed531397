"""What a capture was asked to do, and how it travels to the processes that the command starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from neuron_tools import hardware
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore

VARIABLE = "NEURON_TOOLS_CAPTURE"
HOST_CLOCKS = ("measured", "fixed")
VALUES = ("computed", "skip")
DETAILS = ("instructions", "operations")
LOG_FOLDER = "log"
EagerFusion = Literal["auto", "on", "off"]
EAGER_FUSIONS: tuple[EagerFusion, ...] = ("auto", "on", "off")
DEFAULT_EAGER_FUSION: EagerFusion = "off"
EAGER_FUSION_VARIABLE = "NEURON_TOOLS_EAGER_FUSION"
CONCATENATION_VARIABLE = "TORCH_NEURONX_ENABLE_CONCATENATION"
"""TorchNeuron's own switch, "1" or "0"."""


@frozen
class CaptureOptions:
    """Options of one capture.

    Attributes:
        directory: The profile directory (absolute); logs go to its folder `log`.
        target: Generation or instance to simulate, e.g. "trn2".
        lnc: Physical NeuronCores that make one logical NeuronCore.
        host_clock: "measured" or "fixed" (constant host time per dispatch: reproducible captures).
        fixed_ns_per_dispatch: Host nanoseconds that a dispatch costs under the fixed clock.
        settings: Hardware figures to change, e.g. ("hbm_bandwidth=2x",).
        look_back_s: Keep only so many last seconds of the logs, for profiles on demand; 0 = keep everything.
        ranks: Ranks of the simulated job; those that run stand for all. 0 = those that run.
        world_size: Ranks of a job of which only some run, the others stood in for. 0 = all run.
        tokens_per_step: Tokens that all ranks of the job take in a step, for tokens/s. 0 = not told.
        values: "computed", or "skip": shapes and time alone.
        detail: "instructions", or "operations": without the tables that have a row for each instruction and
            transfer.
        eager_fusion: Which eager operations run as one execution: "auto", those that wait while the device is
            busy; "on", also those for which it is free; "off", none.
        host_samples: Whether the host's threads are sampled, which takes a measured clock.
        logs: Where the processes write their logs (absolute), if not in the profile.
    """

    directory: Path
    target: str = "trn2"
    lnc: int = 1
    host_clock: str = "measured"
    fixed_ns_per_dispatch: int = 10_000
    settings: tuple[str, ...] = ()
    look_back_s: float = 0.0
    logs: Path | None = None
    ranks: int = 0
    world_size: int = 0
    tokens_per_step: int = 0
    values: str = "computed"
    detail: str = "instructions"
    eager_fusion: EagerFusion = DEFAULT_EAGER_FUSION
    host_samples: bool = True

    def __post_init__(self) -> None:
        if self.host_clock not in HOST_CLOCKS:
            raise UsageError(f"The host clock '{self.host_clock}' is unknown: choose measured or fixed.")
        if self.values not in VALUES:
            raise UsageError(f"The values '{self.values}' are unknown: choose computed or skip.")
        if self.detail not in DETAILS:
            raise UsageError(f"The detail '{self.detail}' is unknown: choose instructions or operations.")
        if self.eager_fusion not in EAGER_FUSIONS:
            raise UsageError(f"Eager fusion '{self.eager_fusion}' is unknown: choose auto, on or off.")
        if self.lnc not in (1, 2):
            raise UsageError(f"A logical NeuronCore has 1 or 2 physical ones, not {self.lnc}: use --lnc 2.")

    @property
    def log_directory(self) -> Path:
        """Where the processes of the capture write their logs."""
        return self.logs or self.directory / LOG_FOLDER

    @property
    def samples_host(self) -> bool:
        """Whether the host is sampled: where its time is measured, and not for an unbounded look back."""
        return self.host_samples and self.host_clock == "measured" and not self.look_back_s

    def to_json(self) -> str:
        """The options as one line of JSON."""
        paths = {"directory": str(self.directory), "logs": str(self.logs) if self.logs else None}
        return json.dumps({**asdict(self), **paths})

    @classmethod
    def from_json(cls, text: str) -> CaptureOptions:
        """The options that `to_json` wrote."""
        fields = json.loads(text)
        settings, logs = tuple(fields.pop("settings")), fields.pop("logs", None)
        directory = Path(fields.pop("directory"))
        return cls(directory, settings=settings, logs=Path(logs) if logs else None, **fields)


def eager_fusion_of(environment: Mapping[str, str]) -> EagerFusion:
    """The eager fusion that the environment asks for.

    Raises:
        UsageError: It asks for one that does not exist.
    """
    chosen = environment.get(EAGER_FUSION_VARIABLE, "")
    if chosen:
        for known in EAGER_FUSIONS:
            if chosen == known:
                return known
        raise UsageError(f"{EAGER_FUSION_VARIABLE} is '{chosen}': choose auto, on or off.")
    switches: dict[str, EagerFusion] = {"0": "off", "1": "auto"}
    return switches.get(environment.get(CONCATENATION_VARIABLE, ""), DEFAULT_EAGER_FUSION)


def from_environment(environment: Mapping[str, str]) -> CaptureOptions | None:
    """The options of the capture that this process is part of, if it is."""
    text = environment.get(VARIABLE)
    return CaptureOptions.from_json(text) if text else None


def simulated_core(options: CaptureOptions) -> NeuronCore:
    """The NeuronCore that a capture simulates.

    Raises:
        UsageError: The target or one of the settings is unknown.
    """
    return hardware.apply_settings(hardware.get(options.target, lnc=options.lnc), options.settings)
