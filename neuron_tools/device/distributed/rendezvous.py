"""Where the ranks of a job meet that run: torch.distributed's own server would wait for all of them."""

from __future__ import annotations

import os
from typing import Any

from neuron_tools.device.distributed import job

_servers: list[Any] = []


def serve() -> None:
    """Start the store of this process's job, if this is the first rank of it that runs."""
    import torch.distributed as dist

    now = job.current()
    if now is None or _servers or os.environ.get("RANK") != str(now.running[0]):
        return
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    _servers.append(dist.TCPStore(host, port, is_master=True, wait_for_workers=False))


def answer_at_first_step() -> None:
    """A process that finds out which ranks differ has found none when it comes to an optimizer step."""
    now = job.current()
    if now is not None and now.asks:
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(lambda *_: now.answer(now.running))
