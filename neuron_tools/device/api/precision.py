"""Which number formats mixed precision may use."""

from __future__ import annotations

import torch


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that `torch.autocast("neuron")` accepts."""
    return [torch.bfloat16, torch.float16, torch.float32]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Always true: bfloat16 is a NeuronCore's own format."""
    return True


def is_tf32_supported() -> bool:
    """Always true: products of float32 may run in TF32 (`--auto-cast-type tf32`)."""
    return True
