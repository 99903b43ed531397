"""Process groups as PyTorch/XLA has them: their members alone make them, and each knows its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch.distributed as dist

from neuron_tools.frontends.torch_lowering.meshes import is_tracing_ranks, mesh_name

from .ranks import BACKEND, get_ordinal, xrt_world_size

Groups = Sequence[Sequence[int]]
_made: dict[tuple[int, ...], Any] = {}
_meshes: dict[str, Groups] = {}
_original = dist.new_group


def group_of(groups: Groups | None) -> Any:
    """This rank's process group among `groups`; None for the whole job.

    Where this rank is in none of them, they stand for all of their size, one after the other. A model that is
    traced for all ranks gets the groups' name.
    """
    if is_tracing_ranks():
        return mesh_name(groups or [range(xrt_world_size())])
    if not groups or len(groups[0]) == xrt_world_size():
        return None
    rank, size = get_ordinal(), len(groups[0])
    first = rank // size * size
    own = next((tuple(group) for group in groups if rank in group), tuple(range(first, first + size)))
    if own not in _made:
        _made[own] = _original(list(own), use_local_synchronization=True)
    return _made[own]


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    **others: Any,
) -> Any:
    """`torch.distributed.new_group`, which only the group's members need to call for the backend `xla`.

    Args:
        ranks: Those of the group; all of the job by default.
        timeout: How long its ranks wait for each other.
        backend: "xla" or another; that of the job by default.
        pg_options: `{"xla_pg_options": {"mesh": groups}}` names all groups of its kind.
        **others: Passed on.
    """
    if ranks is None or (backend or dist.get_backend()) != BACKEND:
        return _original(ranks, timeout, backend, pg_options, **others)
    others.setdefault("use_local_synchronization", True)
    group = _original(list(ranks), timeout, backend, None, **others)
    options = pg_options.get("xla_pg_options", {}) if isinstance(pg_options, Mapping) else {}
    if isinstance(group, dist.ProcessGroup):
        _meshes[str(group.group_name)] = options.get("mesh") or [list(ranks)]
    return group


def _mesh(group: dist.ProcessGroup) -> Groups:
    return _meshes.get(str(group.group_name)) or [dist.get_process_group_ranks(group)]


def install() -> None:
    """Let `torch.distributed.new_group` be this one, and groups tell all groups of their kind."""
    dist.new_group = new_group
    dist.ProcessGroup._mesh = property(_mesh)
