"""`torch_xla.test.test_utils`: what training scripts print of themselves."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch

from ..debug import metrics  # noqa: TID252  # found as torch_xla


def print_training_update(
    device: torch.device,
    step: int,
    loss: float,
    rate: float,
    global_rate: float,
    epoch: int | None = None,
    summary_writer: Any = None,
    **_: Any,
) -> None:
    """Print one line of progress."""
    write_to_summary(
        summary_writer, dict_to_write={"examples/sec": rate, "average_examples/sec": global_rate}
    )
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


def get_summary_writer(logdir: str | None) -> Any:
    """Writes files for TensorBoard into a folder, by the package `tensorboard`; None without a folder."""
    if not logdir:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(logdir)


def write_to_summary(
    summary_writer: Any,
    global_step: int | None = None,
    dict_to_write: Mapping[str, float] = {},
    write_xla_metrics: bool = False,
) -> None:
    """Write numbers for TensorBoard.

    Args:
        summary_writer: Writes them; None: nothing is written.
        global_step: The step they stand at.
        dict_to_write: The numbers by their names.
        write_xla_metrics: Whether counters and sums of metrics are written too.
    """
    if summary_writer is None:
        return
    numbers = dict(dict_to_write)
    if write_xla_metrics:
        numbers |= {name: metrics.counter_value(name) or 0 for name in metrics.counter_names()}
        numbers |= {name: (metrics.metric_data(name) or (0, 0.0))[1] for name in metrics.metric_names()}
    for name, value in numbers.items():
        summary_writer.add_scalar(name, value, global_step)


def close_summary_writer(summary_writer: Any) -> None:
    """Write what is left."""
    if summary_writer is not None:
        summary_writer.close()


def now(format: str = "%H:%M:%S") -> str:
    """The time of day."""
    return time.strftime(format)
