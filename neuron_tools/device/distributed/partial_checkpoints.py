"""Distributed checkpoints of a job of which not all ranks run: none is written, as shards are missing."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from neuron_tools.device.distributed import job


def leave_out() -> None:
    """Let `torch.distributed.checkpoint` save nothing where ranks that take part do not run."""
    now = job.current()
    if now is not None:
        from torch.distributed.checkpoint import state_dict_saver

        state_dict_saver._save_state_dict = saving_whole(state_dict_saver._save_state_dict, now)


def saving_whole(save: Callable[..., Any], whole: job.Job) -> Callable[..., Any]:
    """PyTorch's function that saves, which tells and writes nothing where the checkpoint would lack shards.

    Args:
        save: Takes a state dict, a storage writer, `process_group`, whose ranks save (None: all of the job),
            and `no_dist`, which says that this rank saves for itself.
        whole: Of which this process is a rank.
    """
    from torch.distributed.checkpoint import Metadata

    signature = inspect.signature(save)

    @functools.wraps(save)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        given = signature.bind(*arguments, **options).arguments
        missing = 0 if given.get("no_dist") else _missing(whole, given.get("process_group"))
        if not missing:
            return save(*arguments, **options)
        warnings.warn(
            f"No checkpoint is written: {missing} of the ranks that share it do not run, "
            "and their shards are missing.",
            RuntimeWarning,
            stacklevel=3,
        )
        return Metadata(state_dict_metadata={})

    return wrapped


def _missing(whole: job.Job, group: Any) -> int:
    """How many ranks of a group do not run."""
    import torch.distributed as dist

    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    return len(ranks) - len(whole.places(ranks))
