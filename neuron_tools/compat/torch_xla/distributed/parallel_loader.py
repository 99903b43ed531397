"""`torch_xla.distributed.parallel_loader`: batches on the device; each but the first ends a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_xla.errors import XlaError

from ..core import xla_model as xm  # noqa: TID252  # found as torch_xla


def _shard(batch: Any, sharding: Any) -> None:
    if isinstance(sharding, Mapping):
        if not isinstance(batch, Mapping) or not set(batch) <= set(sharding):
            raise XlaError(
                f"input_sharding is a dictionary with the keys {sorted(sharding)} and the batch "
                + (f"has {sorted(batch)}" if isinstance(batch, Mapping) else "is none")
                + ": name each key of the batch, with None for what is whole."
            )
        for key, value in batch.items():
            _shard(value, sharding[key])
    elif sharding is not None:
        if not hasattr(sharding, "can_apply"):
            raise XlaError(
                f"input_sharding got a {type(sharding).__name__}: give a ShardingSpec, or for batches that "
                "are dictionaries one for each key."
            )
        for tensor in pytree.tree_leaves(batch):
            if isinstance(tensor, torch.Tensor) and sharding.can_apply(tensor):
                sharding.apply(tensor)


class PerDeviceLoader:
    """Goes over a loader's batches, on the device."""

    def __init__(self, loader: ParallelLoader, device: torch.device) -> None:
        self._loader, self._device = loader, device

    def __iter__(self) -> Iterator[Any]:
        per_execution = self._loader.batches_per_execution
        for number, batch in enumerate(self._loader.source):
            if number and number % per_execution == 0:
                xm.mark_step()
            (moved,) = xm.send_cpu_data_to_device([batch], self._device)
            _shard(moved, self._loader.input_sharding)
            yield moved
        xm.mark_step()

    def __len__(self) -> int:
        return len(self._loader)


class ParallelLoader:
    """A loader for devices.

    Args:
        cpu_loader: Gives batches on the CPU.
        devices: The devices of this process: one.
        batches_per_execution: After how many batches a step ends.
        input_sharding: How tensors of a batch lie over the cores of a partitioned program, those of as many
            dimensions: a `ShardingSpec`, or one for each key of a batch that is a dictionary.
        **options: Sizes of queues and their like; batches are moved when they are asked for.
    """

    def __init__(
        self,
        cpu_loader: Iterable[Any],
        devices: Sequence[torch.device],
        batches_per_execution: int = 1,
        input_sharding: Any = None,
        **options: Any,
    ) -> None:
        self.source = cpu_loader
        self.batches_per_execution = batches_per_execution
        self.input_sharding = input_sharding
        self._devices = devices

    def per_device_loader(self, device: torch.device) -> PerDeviceLoader:
        """The loader of a device."""
        return PerDeviceLoader(self, device)

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]  # where it has no length, len() says so

    def close(self) -> None:
        """Nothing is left open."""


class MpDeviceLoader:
    """A loader whose batches are on a device; each new batch ends the step before.

    Args:
        loader: Gives batches on the CPU.
        device: Where they go.
        **options: Those of `ParallelLoader`.
    """

    def __init__(self, loader: Iterable[Any], device: torch.device, **options: Any) -> None:
        self._loader, self._device = loader, device
        self._options = options

    def __iter__(self) -> Iterator[Any]:
        loader = ParallelLoader(self._loader, [self._device], **self._options)
        return iter(loader.per_device_loader(self._device))

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]  # where it has no length, len() says so

    def __getattr__(self, name: str) -> Any:
        """What the loader itself has: `dataset`, `sampler`, ..."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)
