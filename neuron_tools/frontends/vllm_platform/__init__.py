"""vLLM on the device: the platform plug-in `neuron`, which an unchanged vLLM finds by its entry point.

vLLM asks each plug-in of the group `vllm.platform_plugins` for a class; a program without vLLM pays nothing.
`TORCH_DEVICE_BACKEND_AUTOLOAD=0` leaves the device out, and vLLM takes its own CPU platform.
"""

from __future__ import annotations

import sys

import torch

from neuron_tools.frontends.vllm_platform.ending import end_undisturbed
from neuron_tools.late_import import after_import

_ENGINE = "vllm.v1.engine.core"


def platform() -> str | None:
    """The platform's class by name, or None where the device is absent or CUDA is here."""
    device = getattr(torch, "neuron", None)
    if device is None or not device.is_available() or torch.cuda.is_available():
        return None
    after_import(_ENGINE, lambda: end_undisturbed(sys.modules[_ENGINE]))
    return "neuron_tools.frontends.vllm_platform.platform.NeuronPlatform"
