"""`torch_xla.core.xla_model`: the device, its steps, and what ranks tell each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TextIO

import torch
import torch.distributed as dist
from torch.utils import _pytree as pytree

from neuron_tools.frontends import torch_xla as _front_end
from neuron_tools.frontends.torch_xla.barrier import put_barrier
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.tensor import DEVICE, XlaTensor

from .collective_calls import (
    REDUCE_AND,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_MUL,
    REDUCE_OR,
    REDUCE_SUM,
    all_gather,
    all_gather_bucketized,
    all_reduce,
    all_to_all,
    broadcast_master_param,
    collective_broadcast,
    reduce_scatter,
    reduce_scatter_bucketized,
)
from .ranks import get_local_ordinal, get_ordinal, has_others, is_master_ordinal, xrt_world_size
from .rates import RateTracker

__all__ = [
    "REDUCE_AND", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_MUL", "REDUCE_OR", "REDUCE_SUM", "RateTracker",
    "ToXlaTensorArena",
    "add_step_closure", "all_gather", "all_gather_bucketized", "all_reduce", "all_to_all",
    "broadcast_master_param", "collective_broadcast", "fork_rng", "get_local_ordinal", "get_memory_info",
    "get_ordinal",
    "get_rng_state", "get_xla_supported_devices", "is_master_ordinal", "is_xla_tensor", "mark_step",
    "master_print", "mesh_reduce", "optimization_barrier_", "optimizer_step", "reduce_gradients",
    "reduce_scatter", "reduce_scatter_bucketized", "rendezvous", "save", "send_cpu_data_to_device",
    "set_replication", "set_rng_state", "to_host", "unlazy", "wait_device_ops", "xla_device",
    "xla_device_hw", "xla_device_kind",
    "xla_real_devices", "xrt_world_size",
]  # fmt: skip

_step_closures: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []


def xla_device(n: int | None = None, devkind: str | None = None) -> torch.device:
    """The device of this process.

    Args:
        n: Its index; only 0 exists.
        devkind: Accepted for compatibility.

    Raises:
        XlaError: There is no such device.
    """
    if n not in (None, 0):
        raise XlaError(
            f"There is no device xla:{n}: a process has one, the NeuronCore it runs on; start more "
            "processes with torchrun --nproc_per_node."
        )
    return DEVICE


def get_xla_supported_devices(devkind: str | None = None, max_devices: int | None = None) -> list[str]:
    """Names of the devices of this process."""
    return [str(DEVICE)]


def xla_device_hw(device: str | torch.device) -> str:
    """What a device is: "NEURON", or "CPU"."""
    return "NEURON" if torch.device(device).type == "xla" else "CPU"


def xla_real_devices(devices: Sequence[str | torch.device] | None = None) -> list[str]:
    """Names of the NeuronCores behind devices."""
    return [f"NEURON:{get_ordinal()}" for _ in devices or [DEVICE]]


def xla_device_kind(device: str | torch.device | None = None) -> str:
    """The chip behind a device."""
    return str(torch.neuron.get_device_name())


def is_xla_tensor(tensor: torch.Tensor) -> bool:
    """Whether a tensor is on the device `xla`."""
    return isinstance(tensor, XlaTensor)


def optimization_barrier_(tensors: Sequence[torch.Tensor]) -> None:
    """Let nothing that is made of tensors from here on be merged with the same made before."""
    put_barrier(tensors)


def set_replication(device: str | torch.device, devices: Sequence[str]) -> None:
    """Accepted for compatibility: which processes work together is told by the process group."""


def mark_step(wait: bool = False, reset_scope: bool = True) -> None:
    """Run what was recorded.

    Args:
        wait: Wait until the device has done it.
        reset_scope: Accepted for compatibility.
    """
    _front_end.METRICS.count("MarkStep")
    _front_end.sync()
    if wait:
        wait_device_ops()
    closures = _step_closures[:]
    _step_closures.clear()
    for closure, args in closures:
        closure(*args)


def wait_device_ops(devices: Sequence[str] = ()) -> None:
    """Wait until the device has done all it was given."""
    _front_end.sync()
    torch.neuron.synchronize()


def unlazy(tensors: Sequence[torch.Tensor]) -> None:
    """Run what was recorded, so that the tensors have their values."""
    _front_end.sync()


def master_print(*args: Any, fd: TextIO | None = None, local: bool = False, flush: bool = False) -> None:
    """Print in the first process only."""
    if is_master_ordinal(local=local):
        print(*args, file=fd or sys.stdout, flush=flush)


def rendezvous(tag: str, payload: bytes = b"", replicas: Sequence[int] = ()) -> list[bytes]:
    """Wait until processes are here; returns what each brought.

    Args:
        tag: Accepted for compatibility.
        payload: What this one brings.
        replicas: Ordinals of those that meet, in the order of what is returned; all by default.

    Raises:
        XlaError: This process is not among them, or there is none of such an ordinal.
    """
    _front_end.sync()
    if not has_others():
        return [payload]
    everyone = range(xrt_world_size())
    ordinals = tuple(replicas) or tuple(everyone)
    meeting = sorted(set(ordinals))
    if get_ordinal() not in meeting or not set(meeting) <= set(everyone):
        raise XlaError(
            f"The process with the ordinal {get_ordinal()} of {len(everyone)} called rendezvous with the "
            f"replicas {list(ordinals)}: name those that meet, this one among them."
        )
    brought: list[Any] = [None] * len(meeting)
    dist.all_gather_object(brought, payload, _group_that_meets(frozenset(meeting)))
    return [brought[meeting.index(ordinal)] for ordinal in ordinals]


@cache
def _group_that_meets(ordinals: frozenset[int]) -> dist.ProcessGroup | None:
    """Their group, which they alone make; None for all."""
    if len(ordinals) == xrt_world_size():
        return None
    return dist.new_group(sorted(ordinals), use_local_synchronization=True)


def mesh_reduce(tag: str, data: Any, reduce_fn: Callable[[list[Any]], Any]) -> Any:
    """What `reduce_fn` makes of the values that all processes bring."""
    data = to_host(data)
    if not has_others():
        return reduce_fn([data])
    brought: list[Any] = [None] * xrt_world_size()
    dist.all_gather_object(brought, data)
    return reduce_fn(brought)


def to_host(data: Any) -> Any:
    """The same structure with its tensors on the CPU."""
    return pytree.tree_map(lambda leaf: leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf, data)


_maybe_convert_to_cpu = to_host


class ToXlaTensorArena:
    """Converts some leaves of a structure, all at once.

    Args:
        convert_fn: Gives, for the list of chosen leaves, the list of what they become.
        select_fn: Whether a leaf is chosen.
    """

    def __init__(
        self, convert_fn: Callable[[list[Any]], list[Any]], select_fn: Callable[[Any], bool]
    ) -> None:
        self._convert, self._select = convert_fn, select_fn

    def transform(self, inputs: Any) -> Any:
        """The same structure with its chosen leaves converted."""
        leaves, structure = pytree.tree_flatten(inputs)
        places = [place for place, leaf in enumerate(leaves) if self._select(leaf)]
        converted = self._convert([leaves[place] for place in places]) if places else []
        for place, leaf in zip(places, converted):
            leaves[place] = leaf
        return pytree.tree_unflatten(leaves, structure)


def send_cpu_data_to_device(datas: Any, device: torch.device, input_sharding: Any = None) -> Any:
    """The same structure with its tensors on the device; a tensor alone becomes a list of one.

    Args:
        datas: Tensors on the CPU, among other things.
        device: Where they go.
        input_sharding: A `ShardingSpec` for those of as many dimensions.
    """

    def moved(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        on_device = leaf.to(device)
        if input_sharding is not None and input_sharding.can_apply(on_device):
            input_sharding.apply(on_device)
        return on_device

    return pytree.tree_map(moved, [datas] if type(datas) is torch.Tensor else datas)


def reduce_gradients(
    optimizer: torch.optim.Optimizer, groups: list[list[int]] | None = None, pin_layout: bool = True
) -> None:
    """Average the gradients of an optimizer's parameters over all ranks."""
    count = len(groups[0]) if groups else xrt_world_size()
    if count > 1:
        all_reduce(REDUCE_SUM, _fetch_gradients(optimizer), scale=1.0 / count, groups=groups)


def _fetch_gradients(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def optimizer_step(
    optimizer: torch.optim.Optimizer,
    barrier: bool = False,
    optimizer_args: dict[str, Any] | None = None,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
) -> Any:
    """Average gradients over the ranks and take the optimizer's step.

    Args:
        optimizer: Whose step is taken.
        barrier: Run what was recorded afterwards; a device loader does it by itself.
        optimizer_args: Arguments of `optimizer.step`.
        groups: Ranks that average among themselves; all by default.
        pin_layout: Accepted for compatibility.

    Returns:
        What `optimizer.step` gives.
    """
    reduce_gradients(optimizer, groups)
    loss = optimizer.step(**(optimizer_args or {}))
    if barrier:
        mark_step()
    return loss


def save(
    data: Any, file_or_path: Any, master_only: bool = True, global_master: bool = False, sync: bool = True
) -> None:
    """Save a structure with its tensors on the CPU.

    Args:
        data: What to save.
        file_or_path: Where.
        master_only: Only the first process writes.
        global_master: The first of the job, not of each machine.
        sync: Let all processes wait for the writer.
    """
    on_host = to_host(data)
    if not master_only or is_master_ordinal(local=not global_master):
        torch.save(on_host, file_or_path)
    if sync:
        rendezvous("torch_xla.core.xla_model.save")


def add_step_closure(
    closure: Callable[..., Any], args: tuple[Any, ...] = (), run_async: bool = False
) -> None:
    """Call a function when this step has run.

    Args:
        closure: The function.
        args: Its arguments, tensors of the step among them.
        run_async: Accepted for compatibility: it is called in the program's own thread.
    """
    _step_closures.append((closure, args))


def set_rng_state(seed: int, device: str | None = None) -> None:
    """Seed the device's random numbers."""
    torch.neuron.manual_seed(seed)


def get_rng_state(device: str | None = None) -> int:
    """A seed that makes the device's next random numbers again.

    Where some were drawn since the device was seeded, it is seeded anew, with one of them: the numbers from
    here on are others than without the call, and the same each time.
    """
    now = torch.neuron.get_rng_state()
    seed = int(torch.neuron.initial_seed())
    torch.neuron.manual_seed(seed)
    if not torch.equal(torch.neuron.get_rng_state(), now):
        torch.neuron.set_rng_state(now)
        seed = int(torch.randint(2**62, (), device="neuron"))
        torch.neuron.manual_seed(seed)
    return seed


@contextmanager
def fork_rng(device: str | None = None, enabled: bool = True) -> Iterator[None]:
    """A block behind which random numbers go on as before it.

    Args:
        device: Accepted for compatibility.
        enabled: Whether they do; else the block is like any other.
    """
    before = torch.neuron.get_rng_state()
    try:
        yield
    finally:
        if enabled:
            torch.neuron.set_rng_state(before)


def get_memory_info(device: torch.device | None = None) -> dict[str, int]:
    """Device memory: bytes in use, and in all."""
    free, total = torch.neuron.mem_get_info()
    return {
        "bytes_used": total - free,
        "bytes_limit": total,
        "peak_bytes_used": torch.neuron.max_memory_allocated(),
    }
