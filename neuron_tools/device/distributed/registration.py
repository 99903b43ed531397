"""Makes `neuron` a back end of torch.distributed, and the default one of neuron tensors."""

from __future__ import annotations

from typing import Any

from neuron_tools.device.distributed import attention_rules, context_parallel
from neuron_tools.device.distributed.late_import import after_import

BACKEND = "neuron"


def register() -> None:
    """Registers the back end; nothing where PyTorch was built without torch.distributed."""
    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, BACKEND.upper()):
        return
    dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=["neuron", "cpu"])
    from neuron_tools.device.distributed import rendezvous, synchronized_norm

    rendezvous.serve()
    rendezvous.answer_at_first_step()
    synchronized_norm.register()
    after_import("torch.distributed.tensor", attention_rules.register)
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


def _create(options: Any, _backend_options: Any) -> Any:
    """A group's back end; called by torch.distributed on every rank of a new group."""
    from neuron_tools.device.distributed.delegate import GroupDelegate
    from neuron_tools.device.distributed.extension import extension
    from neuron_tools.device.distributed.group import NeuronGroup

    group = NeuronGroup(
        store=options.store,
        rank=options.group_rank,
        size=options.group_size,
        timeout=options.timeout,
        ranks=options.global_ranks_in_group,
        name=options.group_id,
    )
    return extension().DelegatingBackend(
        GroupDelegate(group), options.group_rank, options.group_size, options.timeout
    )
