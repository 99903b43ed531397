"""`torch_xla.distributed.xla_multiprocessing`: one process per NeuronCore."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.multiprocessing as mp

from ..utils.utils import get_free_tcp_ports  # noqa: TID252  # found as torch_xla

__all__ = ["MpModelWrapper", "MpSerialExecutor", "spawn"]


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int | None = None,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Run `fn(index, *args)` in each process of the job.

    Args:
        fn: The program.
        args: Its further arguments.
        nprocs: Processes to start; by default as many as `NEURONCORE_NUM_DEVICES` says, or one per NeuronCore
            of this process. 1: none, it runs here.
        join: Wait for them.
        daemon: Whether they end with this one.
        start_method: "spawn", "fork" or "forkserver".
    """
    if "LOCAL_RANK" in os.environ:  # torchrun has started one process per core
        return fn(int(os.environ["LOCAL_RANK"]), *args)
    count = nprocs or int(os.environ.get("NEURONCORE_NUM_DEVICES", 0)) or torch.neuron.device_count()
    if count == 1:
        return fn(0, *args)
    address = ("127.0.0.1", *get_free_tcp_ports())
    return mp.start_processes(
        _run, (fn, count, address, args), count, join=join, daemon=daemon, start_method=start_method
    )


def _run(
    index: int, fn: Callable[..., Any], count: int, address: tuple[str, int], args: tuple[Any, ...]
) -> None:
    host, port = address
    os.environ.update(
        RANK=str(index), LOCAL_RANK=str(index), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count),
        MASTER_ADDR=host, MASTER_PORT=str(port),
    )  # fmt: skip
    torch.neuron.set_device(index % torch.neuron.device_count())
    fn(index, *args)


class MpModelWrapper:
    """A model that each process takes to its device."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model

    def to(self, device: torch.device) -> torch.nn.Module:
        """The model on a device."""
        return self._model.to(device)


class MpSerialExecutor:
    """Runs a function in one process after the other; each has its own files here, so it just runs."""

    def run(self, fn: Callable[[], Any]) -> Any:
        """Run it."""
        return fn()
