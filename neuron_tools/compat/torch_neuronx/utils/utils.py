"""`torch_neuronx.utils.utils`: what the device is, and which chips there are."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from neuron_tools.compiler.flags import parse_flags

SUPPORTED_TYPES = ("inf2", "trn1", "trn1n", "trn2", "trn3")
OVERRIDE = "NEURON_PLATFORM_TARGET_OVERRIDE"


def get_platform_target(compiler_args: str | Sequence[str] | None = None) -> str:
    """The chip's generation: from the compiler's options, the environment, or the simulated device."""
    named = parse_flags(compiler_args or (), with_environment=True).target or os.environ.get(OVERRIDE, "")
    return named or torch.neuron.get_device_properties().name
