"""`torch_xla.distributed.xla_backend`: importing it registers the process group backend `xla` and `xla://`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import torch.distributed as dist
from torch.distributed.constants import default_pg_timeout
from torch.distributed.rendezvous import _rendezvous_handlers, register_rendezvous_handler

from ..core import groups  # noqa: TID252  # found as torch_xla
from ..core.ranks import BACKEND, xrt_world_size  # noqa: TID252  # found as torch_xla

__all__ = ["BACKEND", "SCHEMES", "ProcessGroupXla"]

SCHEMES = ("xla", "pjrt")


class _OfBackend(type):
    def __instancecheck__(cls, group: object) -> bool:
        return isinstance(group, dist.ProcessGroup) and dist.get_backend(group) == BACKEND


class ProcessGroupXla(metaclass=_OfBackend):
    """Process groups of the backend `xla`: `isinstance(dist.group.WORLD, ProcessGroupXla)`."""


def _meet(
    url: str, timeout: timedelta = default_pg_timeout, **_: object
) -> Iterator[tuple[dist.Store, int, int]]:
    """Where the ranks that torchrun or `xmp.spawn` started find each other; a process alone finds itself."""
    if xrt_world_size() == 1:
        yield dist.HashStore(), 0, 1
        return
    yield from dist.rendezvous("env://", timeout=timeout)


for _scheme in SCHEMES:
    if _scheme not in _rendezvous_handlers:
        register_rendezvous_handler(_scheme, _meet)
groups.install()
