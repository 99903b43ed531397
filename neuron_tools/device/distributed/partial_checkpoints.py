"""Distributed checkpoints of a job of which not all ranks run: none is written, as shards are missing."""

from __future__ import annotations

import functools
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
        save: Takes a state dict, a storage writer and the group whose ranks save (None: all of the job).
        whole: Of which this process is a rank.
    """
    from torch.distributed.checkpoint import Metadata

    @functools.wraps(save)
    def wrapped(state_dict: Any, storage_writer: Any, *arguments: Any, **options: Any) -> Any:
        missing = 0 if options.get("no_dist") else _missing(whole, _group(arguments, options))
        if not missing:
            return save(state_dict, storage_writer, *arguments, **options)
        warnings.warn(
            f"No checkpoint is written: {missing} of the ranks that share it do not run, "
            "and their shards are missing.",
            RuntimeWarning,
            stacklevel=3,
        )
        return Metadata(state_dict_metadata={})

    return wrapped


def _group(arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return arguments[0] if arguments else options.get("process_group")


def _missing(whole: job.Job, group: Any) -> int:
    """How many ranks of a group do not run."""
    import torch.distributed as dist

    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    return len(ranks) - len(whole.places(ranks))
