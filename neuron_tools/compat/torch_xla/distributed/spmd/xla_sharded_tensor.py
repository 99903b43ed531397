"""`torch_xla.distributed.spmd.xla_sharded_tensor`: tensors in parts over the cores, and these parts.

`placements` and `redistribute` are DTensor's words for the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import EllipsisType
from typing import Any, ClassVar

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.marking import place, sharding_text
from neuron_tools.frontends.torch_xla.sharding import WHOLE
from neuron_tools.frontends.torch_xla.spread import core_count
from neuron_tools.frontends.torch_xla.tensor import Dispatcher, LazyValue, XlaTensor

from .mesh import AxisNumbers, Mesh
from .placements import convert_to_xla_mesh, convert_to_xla_partition_spec, placements_of


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


def _dispatch(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Record an operation; its results lie in parts, too."""
    return pytree.tree_map_only(XlaTensor, _wrapped, XlaTensor.dispatcher(func, args, kwargs))


class XLAShardedTensor(XlaTensor):
    """A tensor of the device `xla` that lies over the cores as somebody said.

    Args:
        elem: The tensor; both are the same value.
        mesh_shape: Extents of the mesh that it lies over, where that is known.
        partition_spec: For each of its dimensions the numbers of the axes that it is cut along, likewise.
        requires_grad: Whether it is to have a gradient of its own.

    Attributes:
        global_tensor: The whole tensor.
        mesh_shape: As given.
        partition_spec: As given.
    """

    global_tensor: XlaTensor
    mesh_shape: tuple[int, ...] | None
    partition_spec: AxisNumbers | None
    _cached_spec: DTensorSpec | None
    dispatcher: ClassVar[Dispatcher] = staticmethod(_dispatch)

    @staticmethod
    def __new__(
        cls: type[XLAShardedTensor],
        elem: torch.Tensor,
        mesh_shape: tuple[int, ...] | None = None,
        partition_spec: AxisNumbers | None = None,
        requires_grad: bool = False,
    ) -> XLAShardedTensor:
        """Another tensor of the same value."""
        whole = elem.global_tensor if isinstance(elem, XLAShardedTensor) else elem.to("xla")
        assert isinstance(whole, XlaTensor)
        made = cls._shell(whole.lazy, whole.dtype)
        made.global_tensor, made._cached_spec = whole, None
        made.mesh_shape, made.partition_spec = mesh_shape, partition_spec
        made.requires_grad = requires_grad
        return made

    def __init__(self, elem: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    @property
    def lazy(self) -> LazyValue:
        """What both tensors hold, also when the whole one gets another."""
        return self.global_tensor.lazy

    @lazy.setter
    def lazy(self, value: LazyValue) -> None:
        self.global_tensor.lazy = value

    @property
    def _spec(self) -> DTensorSpec:
        """How it lies, as DTensor writes it."""
        if self.mesh_shape is None or self.partition_spec is None:
            raise XlaError(
                "Nobody has said of this tensor how it lies over a mesh, so it has no placements: call "
                "mark_sharding or distribute_tensor on it."
            )
        is_whole = self.lazy.sharding == WHOLE
        if self._cached_spec is None or self._cached_spec.is_replicated() != is_whole:
            cores = torch.arange(math.prod(self.mesh_shape)).reshape(self.mesh_shape)
            meta = TensorMeta(self.shape, self.stride(), self.dtype)
            placements = placements_of(self.mesh_shape, () if is_whole else self.partition_spec)
            self._cached_spec = DTensorSpec(DeviceMesh("xla", cores), placements, tensor_meta=meta)
        return self._cached_spec

    @property
    def placements(self) -> tuple[Placement, ...]:
        """For each axis of the mesh, which dimension it cuts.

        Raises:
            XlaError: Nobody has said how it lies.
        """
        return tuple(self._spec.placements)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh that it lies over.

        Raises:
            XlaError: Nobody has said how it lies.
        """
        return self._spec.mesh

    def invalidate_spec_cache(self) -> None:
        """Forget `placements`, which follow from what is known of the mesh."""
        self._cached_spec = None

    def redistribute(
        self, device_mesh: Mesh | DeviceMesh, placements: Sequence[Placement], *, async_op: bool = False
    ) -> XLAShardedTensor:
        """Let the tensor lie over the cores in another way from here on.

        Args:
            device_mesh: Of all cores of this process.
            placements: One for each of its axes.
            async_op: Let a copy lie so, and the tensor as before.

        Raises:
            XlaError: There is not one placement for each axis, or a tensor cannot lie so.
        """
        mesh = device_mesh if isinstance(device_mesh, Mesh) else convert_to_xla_mesh(device_mesh)
        if len(placements) != len(mesh.mesh_shape):
            raise XlaError(
                f"The mesh has {len(mesh.mesh_shape)} axes and got {len(placements)} placements: give one "
                "for each."
            )
        spec = convert_to_xla_partition_spec(self, placements)
        moved = self.global_tensor.clone() if async_op else self.global_tensor
        assert isinstance(moved, XlaTensor)
        place(moved, mesh.sharding(spec))
        return wrap_as_sharded_tensor(moved if async_op else self, mesh.mesh_shape, spec)

    def __repr__(self, **options: Any) -> str:
        """The values; this runs what was recorded."""
        return f"XLAShardedTensor({self.global_tensor.__repr__(**options)})"

    @property
    def sharding_spec(self) -> str:
        """How it lies, as XLA writes it."""
        return sharding_text(self.lazy)

    @property
    def sharding_type(self) -> ShardingType:
        """What kind of sharding that is."""
        if self.lazy.by_core is not None:
            return ShardingType.MANUAL
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


def _wrapped(tensor: XlaTensor) -> XLAShardedTensor:
    return tensor if isinstance(tensor, XLAShardedTensor) else XLAShardedTensor(tensor)


def wrap_as_sharded_tensor(
    t: torch.Tensor,
    mesh_shape: tuple[int, ...] | None = None,
    partition_spec: AxisNumbers | None = None,
) -> XLAShardedTensor:
    """A tensor as one of which it is known how it lies over a mesh."""
    if not isinstance(t, XLAShardedTensor):
        return XLAShardedTensor(t, mesh_shape, partition_spec)
    t.mesh_shape = mesh_shape or t.mesh_shape
    t.partition_spec = t.partition_spec if partition_spec is None else partition_spec
    t.invalidate_spec_cache()
    return t


def unwrap_sharded_tensor(t: torch.Tensor) -> torch.Tensor:
    """The whole tensor."""
    return t.global_tensor if isinstance(t, XLAShardedTensor) else t


def wrap_if_sharded(x: Any) -> Any:
    """A tensor as one of which the parts can be asked for, where it has any."""
    is_sharded = isinstance(x, XlaTensor) and x.lazy.sharding is not None
    return wrap_as_sharded_tensor(x) if is_sharded else x


def _padded(part: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A copy with zeros behind it, up to a shape."""
    padded = part.new_zeros(shape)
    padded[tuple(slice(0, extent) for extent in part.shape)] = part
    return padded
