"""Makes `neuron` a back end of torch.distributed, and the default one of neuron tensors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from neuron_tools.device.distributed import attention_rules, context_parallel, partial_checkpoints
from neuron_tools.late_import import after_import

BACKEND = "neuron"


def register() -> None:
    """Registers the back end; nothing where PyTorch was built without torch.distributed."""
    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, BACKEND.upper()):
        return
    dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=["neuron"])
    from neuron_tools.device.distributed import (
        default_backend,
        host_groups,
        rendezvous,
        synchronized_norm,
        timeouts,
    )

    rendezvous.serve()
    rendezvous.meet_without_the_others()
    default_backend.let_be_default(BACKEND)
    host_groups.stand_in(BACKEND)
    rendezvous.answer_at_first_step()
    timeouts.let_be_set(BACKEND)
    synchronized_norm.register()
    after_import("torch.distributed.tensor", attention_rules.register)
    after_import("torch.distributed.checkpoint.state_dict_saver", partial_checkpoints.leave_out)
    after_import(
        "torch.distributed.tensor.experimental._context_parallel._attention", context_parallel.register
    )


def register_alias(name: str) -> None:
    """Registers the back end under another name too; does nothing the second time.

    Args:
        name: What programs pass to `init_process_group`, in small letters.
    """
    import torch.distributed as dist

    if dist.is_available() and not hasattr(dist.Backend, name.upper()):
        dist.Backend.register_backend(name, _create, extended_api=True, devices=["neuron", "cpu", name])


def backend_of(
    store: Any, *, rank: int, size: int, timeout: timedelta, ranks: Sequence[int], name: str
) -> Any:
    """The back end of a group, also of one that torch.distributed does not know: of processes of two jobs.

    Args:
        store: Where its ranks find each other.
        rank, size: Of this process in the group.
        timeout: How long ranks wait for each other.
        ranks: Global ranks of the group, in order.
        name: The group's name, the same on all ranks.
    """
    from neuron_tools.device.distributed.delegate import GroupDelegate
    from neuron_tools.device.distributed.extension import extension
    from neuron_tools.device.distributed.group import NeuronGroup

    group = NeuronGroup(store=store, rank=rank, size=size, timeout=timeout, ranks=ranks, name=name)
    return extension().DelegatingBackend(GroupDelegate(group), rank, size, timeout)


def _create(options: Any, _backend_options: Any) -> Any:
    """A group's back end; called by torch.distributed on every rank of a new group."""
    return backend_of(
        options.store,
        rank=options.group_rank,
        size=options.group_size,
        timeout=options.timeout,
        ranks=options.global_ranks_in_group,
        name=options.group_id,
    )
