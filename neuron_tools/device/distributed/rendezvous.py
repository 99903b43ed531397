"""Where the ranks of a job meet that run: torch.distributed's own server would wait for all of them."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from neuron_tools.device.distributed import job

_SERVED = "NEURON_TOOLS_JOB_SERVED"
"""Set in the environment of processes that a rank starts: that rank has the job's store."""
_servers: list[Any] = []


def serve() -> None:
    """Start the store of this process's job, if this is the first rank of it that runs."""
    import torch.distributed as dist

    now = job.current()
    if now is None or _SERVED in os.environ or os.environ.get("RANK") != str(now.running[0]):
        return
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    _servers.append(dist.TCPStore(host, port, is_master=True, wait_for_workers=False))
    os.environ[_SERVED] = "1"


def meet_without_the_others() -> None:
    """Let ranks that meet at a store of their own (processes that save checkpoints) wait for none."""
    now = job.current()
    if now is not None:
        rendezvous: Any = importlib.import_module("torch.distributed.rendezvous")  # a function has its name
        rendezvous._create_c10d_store = meeting(rendezvous._create_c10d_store, now)


def meeting(meet: Callable[..., Any], whole: job.Job) -> Callable[..., Any]:
    """PyTorch's function that makes a store, whose server is the first rank that runs.

    Args:
        meet: Takes host, port, rank, number of ranks, timeout, and whether libuv serves; gives a client where
            the process that started the ranks serves.
        whole: Of which this process is a rank.
    """

    @functools.wraps(meet)
    def wrapped(
        host: str, port: int, rank: int, ranks: int, timeout: timedelta, use_libuv: bool = True
    ) -> Any:
        from torch.distributed import TCPStore
        from torch.distributed.rendezvous import _torchelastic_use_agent_store

        if ranks != whole.ranks or _torchelastic_use_agent_store():
            return meet(host, port, rank, ranks, timeout, use_libuv)
        return TCPStore(
            host_name=host,
            port=port,
            is_master=rank == whole.running[0],
            wait_for_workers=False,
            timeout=timeout,
            multi_tenant=True,
            use_libuv=use_libuv,
        )

    return wrapped


def answer_at_first_step() -> None:
    """A process that finds out which ranks differ has found none when it comes to an optimizer step."""
    now = job.current()
    if now is not None and now.asks:
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(lambda *_: now.answer(now.running))
