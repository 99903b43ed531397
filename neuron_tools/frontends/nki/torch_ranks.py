"""Values of collectives inside kernels where `torch.distributed` has set the ranks up: gloo moves them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch.distributed as dist

from neuron_tools.arrays import Array


class TorchRanks:
    """The ranks of the default process group."""

    @property
    def rank(self) -> int:
        """This process's rank."""
        return int(dist.get_rank())

    def exchange(self, group: Sequence[int], array: Array) -> list[Array]:
        """What every rank of a group gave, in the group's order; all of them must call it."""
        from neuron_tools.device import native

        suppressed = native.suppress(True)
        try:
            received: list[Any] = [None] * len(group)
            dist.all_gather_object(received, _packed(array), group=_gloo(tuple(sorted(group))))
        finally:
            native.suppress(suppressed)
        by_rank = dict(zip(sorted(group), received))
        return [_unpacked(by_rank[rank], array.dtype) for rank in group]


def torch_ranks() -> TorchRanks | None:
    """The communicator of this process; None where no process group is set up."""
    return TorchRanks() if dist.is_available() and dist.is_initialized() else None


@lru_cache(maxsize=64)
def _gloo(ranks: tuple[int, ...]) -> Any:
    return dist.new_group(list(ranks), backend="gloo", use_local_synchronization=True)


def _packed(array: Array) -> bytes:
    """Shape and bytes; the small floats' types are told by the receiver."""
    file = io.BytesIO()
    np.save(file, (array if array.ndim else array.reshape(1)).view(np.uint8))
    return file.getvalue()


def _unpacked(data: bytes, dtype: Any) -> Array:
    loaded: Array = np.load(io.BytesIO(data)).view(dtype)
    return loaded
