"""Values in parts on the NeuronCores of this process, as a program that is partitioned over them has them.

A value is computed whole, in memory of none of them; its parts take the memory and the time of copies.
"""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager, nullcontext

import torch

from neuron_tools.device import native
from neuron_tools.device.distributed.host_values import host_alias
from neuron_tools.frontends.torch_xla.sharding import WHOLE, Sharding
from neuron_tools.frontends.torch_xla.tensor import LazyValue, Parts

_on: list[bool] = [False]
_held: weakref.WeakValueDictionary[int, Parts] = weakref.WeakValueDictionary()
"""By storage: aliases have the same parts."""


def spread_programs() -> None:
    """Partition programs over all NeuronCores of this process from now on."""
    _on[0] = True


def is_asked_for() -> bool:
    """Whether programs are to be partitioned."""
    return _on[0]


def is_spread() -> bool:
    """Whether programs are partitioned: on one core there is nothing to share out."""
    return _on[0] and core_count() > 1


def core_count() -> int:
    """NeuronCores of this process."""
    return int(torch.neuron.device_count())


def whole_values() -> AbstractContextManager[None]:
    """A block that makes whole values: of a partitioned program they lie in the memory of no core."""
    return native.uncounted_memory() if is_spread() else nullcontext()


def bring(value: LazyValue) -> None:
    """Copy a value's parts from the host to the cores, where these do not have them."""
    if value.inner.device.type == "cpu" or _known(value):  # numbers are part of the call
        return
    sharding, inner = value.sharding or WHOLE, host_alias(value.inner)
    with native.without_values():
        _keep(
            value,
            Parts(
                inner[sharding.part(inner.shape, core)].to(f"neuron:{core}", non_blocking=True)
                for core in range(core_count())
            ),
        )


def make(value: LazyValue) -> None:
    """Give what a program has made its memory on the cores."""
    if _known(value):
        return
    sharding, inner = value.sharding or WHOLE, value.inner
    with native.unrecorded(), native.without_values():
        _keep(
            value,
            Parts(
                inner.new_empty(_extents(sharding, inner, core), device=f"neuron:{core}")
                for core in range(core_count())
            ),
        )


def read(value: LazyValue) -> torch.Tensor:
    """A value on the host, once those cores that have its parts have copied them there."""
    if not is_spread():
        return value.inner.to("cpu")
    if value.parts is not None:
        sharding = value.sharding or WHOLE
        with native.without_values():
            seen = set()
            for core, part in enumerate(value.parts):
                tile = tuple((cut.start, cut.stop) for cut in sharding.part(value.inner.shape, core))
                if tile not in seen:
                    seen.add(tile)
                    part.to("cpu")
    with native.unrecorded():
        return value.inner.to("cpu")


def _extents(sharding: Sharding, inner: torch.Tensor, core: int) -> list[int]:
    return [cut.stop - cut.start for cut in sharding.part(inner.shape, core)]


def _known(value: LazyValue) -> bool:
    if value.parts is None:
        value.parts = _held.get(_storage(value))
    return value.parts is not None


def _keep(value: LazyValue, parts: Parts) -> None:
    value.parts = _held[_storage(value)] = parts


def _storage(value: LazyValue) -> int:
    return int(value.inner.untyped_storage()._cdata)
