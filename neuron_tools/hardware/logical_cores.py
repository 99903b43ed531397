"""LNC: how many physical NeuronCores make one logical one, as the user's environment says it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from neuron_tools.hardware.errors import UnknownTargetError

LNC_VARIABLE = "NEURON_LOGICAL_NC_CONFIG"
LNC_VARIABLES = (LNC_VARIABLE, "NEURON_RT_VIRTUAL_CORE_SIZE")
"""AWS's runtime reads them, the newer name first."""
DEFAULT_LNC = 1


def chosen_lnc(asked: int | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Physical cores of a logical one: what was asked for, else what the environment says, else 1.

    Raises:
        UnknownTargetError: A variable has a value that is no such number.
    """
    if asked is not None:
        return asked
    for name in LNC_VARIABLES:
        text = environment.get(name, "")
        if text:
            if text not in ("1", "2"):
                raise UnknownTargetError(
                    f"{name} is '{text}': a logical NeuronCore has 1 or 2 physical ones."
                )
            return int(text)
    return DEFAULT_LNC
