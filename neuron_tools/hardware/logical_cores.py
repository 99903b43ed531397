"""LNC: how many physical NeuronCores make one logical one, as the user or the generation has it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from neuron_tools.hardware import catalogue
from neuron_tools.hardware.errors import UnknownTargetError

LNC_VARIABLE = "NEURON_LOGICAL_NC_CONFIG"
LNC_VARIABLES = (LNC_VARIABLE, "NEURON_RT_VIRTUAL_CORE_SIZE")
"""AWS's runtime reads them, the newer name first."""


CORES_VARIABLE = "NEURON_TOOLS_INSTANCE_CORES"
"""Set by a capture whose target is an instance: the logical cores of it."""
TIMED_VARIABLE = "NEURON_TOOLS_TIMED"
"""The target of a process that keeps simulated time without a capture."""


def instance_cores(target: str, lnc: int | None = None) -> int | None:
    """Logical NeuronCores of an instance type ("trn2.48xlarge"); None for a generation ("trn2").

    Args:
        target: Generation or instance type.
        lnc: Physical cores of a logical one; None: as the environment or the generation has it.
    """
    if target not in catalogue.instances():
        return None
    return catalogue.device(target, lnc=chosen_lnc(target, lnc)).logical_core_count


def told_cores(environment: Mapping[str, str] = os.environ) -> int | None:
    """Logical NeuronCores of the instance that this process runs on; None where nothing names one."""
    told = environment.get(CORES_VARIABLE, "")
    return int(told) if told.isdecimal() else instance_cores(environment.get(TIMED_VARIABLE, ""))


def chosen_lnc(target: str, asked: int | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Physical cores of a logical one.

    Args:
        target: Generation or instance type.
        asked: What the user asked for in so many words; it wins.
        environment: Where AWS's variables are looked up. They speak of generations whose cores can be
            joined; the others have single ones.

    Returns:
        What was asked for, else what the environment says, else the generation's own (Trn2, Trn3: 2).

    Raises:
        UnknownTargetError: There is no such target, or a variable has a value that is no such number.
    """
    if asked is not None:
        return asked
    own = catalogue.get(target).logical_core_size
    return min(_told(environment) or own, own)


def _told(environment: Mapping[str, str]) -> int | None:
    for name in LNC_VARIABLES:
        text = environment.get(name, "")
        if text in ("1", "2"):
            return int(text)
        if text:
            raise UnknownTargetError(f"{name} is '{text}': a logical NeuronCore has 1 or 2 physical ones.")
    return None
