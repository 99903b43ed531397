"""`torch_xla.distributed.spmd.xla_sharded_tensor`: tensors in parts over the cores, and these parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import EllipsisType
from typing import Any

import torch

from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.sharding import WHOLE
from neuron_tools.frontends.torch_xla.spread import core_count
from neuron_tools.frontends.torch_xla.tensor import XlaTensor


class ShardingType(IntEnum):
    """Kinds of shardings."""

    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    TILED = 3
    MANUAL = 4
    PARTIAL = 5
    UNKNOWN = 6


@dataclass
class XLAShard:
    """What one core has of a tensor.

    Attributes:
        data: The part, on the CPU; with zeros behind it where the cores do not divide the tensor.
        indices: Where it is in the tensor; `...` where it is all of it.
        shard_device: "NEURON:0", ...
        replica_id: Which of the cores that have the same part it is.
    """

    data: torch.Tensor
    indices: list[slice] | EllipsisType
    shard_device: str
    replica_id: int

    @property
    def unpadded_data(self) -> torch.Tensor:
        """The part without the zeros behind it."""
        if self.indices is ...:
            return self.data
        return self.data[tuple(slice(0, cut.stop - cut.start) for cut in self.indices)]


class XLAShardedTensor(XlaTensor):
    """A tensor of the device `xla` that lies over the cores as somebody said.

    Args:
        elem: The tensor; both are the same value.
    """

    @staticmethod
    def __new__(cls: type[XLAShardedTensor], elem: XlaTensor, *args: Any, **kwargs: Any) -> XLAShardedTensor:
        """Another tensor of the same value."""
        made = XlaTensor.__new__(cls, elem.lazy, elem.dtype)
        assert isinstance(made, cls)
        return made

    def __init__(self, elem: XlaTensor, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    @property
    def global_tensor(self) -> torch.Tensor:
        """The whole tensor."""
        return XlaTensor(self.lazy, self.dtype)

    @property
    def sharding_spec(self) -> str:
        """How it lies, as XLA writes it."""
        return self.lazy.sharding.text if self.lazy.sharding else ""

    @property
    def sharding_type(self) -> ShardingType:
        """What kind of sharding that is."""
        sharding = self.lazy.sharding or WHOLE
        if not sharding.tiles:
            return ShardingType.REPLICATED
        return ShardingType.PARTIAL if sharding.repeats else ShardingType.TILED

    @property
    def local_shards(self) -> list[XLAShard]:
        """What each core has; this runs what was recorded."""
        whole, sharding = self.detach().cpu(), self.lazy.sharding or WHOLE
        parts = [sharding.part(self.shape, core) for core in range(core_count())]
        return [
            XLAShard(
                _padded(whole[part], sharding.tile(self.shape)),
                [slice(cut.start, cut.stop, 1) for cut in part] if sharding.tiles else ...,
                f"NEURON:{core}",
                parts[:core].count(part),
            )
            for core, part in enumerate(parts)
        ]

    def load_local_shards_(self, shards: list[XLAShard]) -> None:
        """Give the tensor the values of its parts.

        Raises:
            XlaError: There are not as many parts as cores, a part has another shape, or the tensor has none.
        """
        sharding = self.lazy.sharding or WHOLE
        if not sharding.tiles:
            raise XlaError("The tensor is whole on each core and has no parts to load: use copy_.")
        if len(shards) != core_count():
            raise XlaError(
                f"load_local_shards_ got {len(shards)} parts for {core_count()} cores: give those of "
                "local_shards, with other data."
            )
        tile, whole = sharding.tile(self.shape), self.detach().cpu()
        for core, shard in enumerate(shards):
            if tuple(shard.data.shape) != tile:
                raise XlaError(
                    f"Part {core} has the shape {list(shard.data.shape)} and not {list(tile)}: give those of "
                    "local_shards, with other data."
                )
            whole[sharding.part(self.shape, core)] = shard.unpadded_data
        self.global_tensor.copy_(whole)


def _padded(part: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A copy with zeros behind it, up to a shape."""
    padded = part.new_zeros(shape)
    padded[tuple(slice(0, extent) for extent in part.shape)] = part
    return padded
