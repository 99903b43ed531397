"""Which NeuronCore kernels run on: the capture's target, else Trn2."""

from __future__ import annotations

import os
from functools import lru_cache

from neuron_tools import hardware
from neuron_tools.hardware import NeuronCore

TARGET_VARIABLES = ("NEURON_TOOLS_TARGET", "NEURON_PLATFORM_TARGET_OVERRIDE")
_GENERATIONS = {"gen2": "trn1", "gen3": "trn2", "gen4": "trn3", "inf2": "inf2"}
_override: list[str] = []


def set_target(target: str | None) -> None:
    """Choose the target of kernels in this process; None returns to the environment's."""
    _override[:] = [target] if target else []


def target_name() -> str:
    """The target: set in this process, else by the environment, else "trn2"."""
    if _override:
        return _override[0]
    for variable in TARGET_VARIABLES:
        value = os.environ.get(variable, "").strip().lower()
        if value:
            return _GENERATIONS.get(value, value)
    return "trn2"


def default_core() -> NeuronCore:
    """The NeuronCore of the target."""
    return _core(target_name())


@lru_cache(maxsize=8)
def _core(target: str) -> NeuronCore:
    return hardware.get(target)
