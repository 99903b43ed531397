"""What programs use of `torch_xla._XLAC`, the real package's compiled part."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuron_tools.frontends.torch_xla import METRICS
from neuron_tools.frontends.torch_xla.marking import sharding_text
from neuron_tools.frontends.torch_xla.tensor import XlaTensor

from .core import xla_model as xm
from .debug.metrics import metrics_report

_ir_debug = False


def _xla_sync_multi(
    tensors: Sequence[torch.Tensor],
    devices: Sequence[str] = (),
    wait: bool = True,
    sync_xla_data: bool = True,
) -> None:
    """Run what was recorded, so that the tensors have their values."""
    xm.unlazy(tensors)
    if wait:
        xm.wait_device_ops()


def _xla_increment_counter(name: str, value: int) -> None:
    """Add to a counter of `torch_xla.debug.metrics`."""
    METRICS.counters[name] += value


def _xla_metrics_report() -> str:
    """All metrics and counters as text."""
    return metrics_report()


def _get_ir_debug() -> bool:
    """Whether operations shall keep their source lines; they always do."""
    return _ir_debug


def _set_ir_debug(enabled: bool) -> None:
    """Accepted for compatibility."""
    global _ir_debug
    _ir_debug = enabled


def _get_xla_sharding_spec(tensor: torch.Tensor) -> str:
    """How a tensor lies over the cores, as XLA writes it; "" where nobody has said so."""
    return sharding_text(tensor.lazy) if isinstance(tensor, XlaTensor) else ""
