"""`torch_xla.test.test_utils`: what training scripts print of themselves."""

from __future__ import annotations

import time
from typing import Any

import torch


def print_training_update(
    device: torch.device,
    step: int,
    loss: float,
    rate: float,
    global_rate: float,
    epoch: int | None = None,
    **_: Any,
) -> None:
    """Print one line of progress."""
    where = f"Epoch={epoch} " if epoch is not None else ""
    print(
        f"Training Device={device} {where}Step={step} Loss={float(loss):.5f} Rate={rate:.2f} "
        f"GlobalRate={global_rate:.2f} Time={now()}",
        flush=True,
    )


def print_test_update(
    device: torch.device, accuracy: float | None, epoch: int | None = None, **_: Any
) -> None:
    """Print one line of a test's progress."""
    print(f"Testing Device={device} Epoch={epoch} Accuracy={accuracy} Time={now()}", flush=True)


def now(format: str = "%H:%M:%S") -> str:
    """The time of day."""
    return time.strftime(format)
