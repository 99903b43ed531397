"""Rows of ranks that are simulated but did not run: each is one that ran, in another replica of the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

PROCESS_STRIDE = 256
"""Process p in replica k of the job has process_idx p + k * PROCESS_STRIDE."""
_ID_SHIFT = 48


def replica_process(process_idx: int, replica: int) -> int:
    """Number of a process in a replica; 0 is the one that ran."""
    return process_idx + replica * PROCESS_STRIDE


def replicated(columns: Mapping[str, Any], replica: int) -> dict[str, Any]:
    """Rows of a process as those of its counterpart in a replica: other process and ids, the same times."""
    moved = dict(columns)
    moved["process_idx"] = np.asarray(columns["process_idx"]) + replica * PROCESS_STRIDE
    if "id" in moved:
        moved["id"] = np.asarray(columns["id"], np.int64) + (replica * PROCESS_STRIDE << _ID_SHIFT)
    return moved


def replica_process_row(row: Mapping[str, list[Any]], replica: int, running: int) -> dict[str, list[Any]]:
    """ProcessInfo of a rank's counterpart.

    Args:
        running: Ranks of one replica.
    """
    (process_idx,), (rank,) = row["process_idx"], row["rank"]
    return {
        **row,
        "process_idx": [replica_process(process_idx, replica)],
        "rank": [rank + replica * running],
        "replica_of_rank": [rank],
        "process_id": [None],
        "host": [None],
        "name": [f"as rank {rank}, which ran"],
    }


def replication_notice(running: int, replicas: int) -> str:
    """What a profile says of its replicas."""
    return (
        f"{running * replicas} ranks are simulated and {running} of them ran: rank r stands for the ranks "
        f"r + k x {running}. Collectives and the links are those of all ranks; what each rank computes, and "
        "when it is ready, is that of the rank that ran."
    )
