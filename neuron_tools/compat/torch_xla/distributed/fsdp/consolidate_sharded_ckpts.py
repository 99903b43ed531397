"""`torch_xla.distributed.fsdp.consolidate_sharded_ckpts`: the whole model's state from that of all ranks."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from glob import glob
from math import prod
from typing import Any

import torch

from .shards import plain_name


def consolidate_sharded_state_dicts(
    state_dict_list: Sequence[Mapping[str, torch.Tensor]], shard_metadata: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    """The state of the model that nothing wraps.

    Args:
        state_dict_list: `model.state_dict()` of each rank, in order.
        shard_metadata: `model.get_shard_metadata()` of any of them.
    """
    whole: dict[str, torch.Tensor] = {}
    for key, first in state_dict_list[0].items():
        info = shard_metadata["shard_info"].get(key)
        if info is None:
            whole[plain_name(key)] = first
            continue
        flat = torch.cat([state[key] for state in state_dict_list])
        whole[info["name"]] = flat[: prod(info["shape"])].reshape(info["shape"])
    return whole


def consolidate_sharded_model_checkpoints(
    ckpt_prefix: str, ckpt_suffix: str = "*.pth", save_path: str = "", save_model: bool = True
) -> tuple[dict[str, Any], list[Any]]:
    """Put the checkpoints of all ranks together.

    Args:
        ckpt_prefix: What the files' names begin with.
        ckpt_suffix: What they end with, as a pattern.
        save_path: The new file; by default `ckpt_prefix` with "_consolidated.pth".
        save_model: Whether one is written.

    Returns:
        The whole model's state, and the optimizers' states of all ranks.

    Raises:
        FileNotFoundError: There are no such files, or not one for each rank.
    """
    pattern = ckpt_prefix + ckpt_suffix
    checkpoints = [torch.load(file, map_location="cpu") for file in glob(pattern)]
    if not checkpoints or len(checkpoints) != checkpoints[0]["shard_metadata"]["world_size"]:
        raise FileNotFoundError(f"{pattern} names {len(checkpoints)} files, not one for each rank.")
    checkpoints.sort(key=lambda each: each["shard_metadata"]["rank"])
    model = consolidate_sharded_state_dicts(
        [each["model"] for each in checkpoints], checkpoints[0]["shard_metadata"]
    )
    if save_model:
        torch.save({"model": model}, save_path or f"{ckpt_prefix}_consolidated.pth")
    return {"model": model}, [each.get("optimizer") for each in checkpoints]


def main() -> None:
    """Put the checkpoints of all ranks together; the command line."""
    parser = argparse.ArgumentParser(description=consolidate_sharded_model_checkpoints.__doc__)
    parser.add_argument("--ckpt_prefix", required=True)
    parser.add_argument("--ckpt_suffix", default="*.pth")
    parser.add_argument("--save_path", default="")
    given = parser.parse_args()
    consolidate_sharded_model_checkpoints(given.ckpt_prefix, given.ckpt_suffix, given.save_path)


if __name__ == "__main__":
    main()
