"""Which NeuronCore kernels run on: the capture's, else that of the target in the environment, else Trn2."""

from __future__ import annotations

import os
from functools import lru_cache

from neuron_tools import hardware
from neuron_tools.hardware import NeuronCore

TARGET_VARIABLES = (
    "NEURON_TOOLS_TARGET", "NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION", "NEURON_TOOLS_TIMED",
)  # fmt: skip
"""The first that is set decides; the last is set in every run of `python -m neuron_tools`."""
_GENERATIONS = {"gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}
_chosen: list[NeuronCore] = []


def set_core(core: NeuronCore | None) -> None:
    """Choose the core of kernels in this process; None returns to the environment's."""
    _chosen[:] = [core] if core is not None else []


def target_name() -> str:
    """The target that the environment names; "trn2" where it names none."""
    for variable in TARGET_VARIABLES:
        value = os.environ.get(variable, "").strip().lower()
        if value:
            return _GENERATIONS.get(value, value)
    return "trn2"


def default_core() -> NeuronCore:
    """The NeuronCore that kernels run on."""
    return _chosen[0] if _chosen else _core(target_name())


@lru_cache(maxsize=8)
def _core(target: str) -> NeuronCore:
    return hardware.get(target)
