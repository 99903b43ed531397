"""A typical step of a job: how long it is, how well it uses the chip, what of it is communication or bubble.

Each rank that ran is measured by itself over the same step; the others do as these. The step's time falls
apart into what the device computes, collectives that nothing hides, waits for messages of other pipeline
stages that nothing hides (the bubble, with the time in which the messages move), and the rest: the host, or
other ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_profile.analysis.spans import Union, length_ns, overlap_ns, union
from neuron_profile.analysis.time.logical_cores import physical_cores
from neuron_profile.analysis.time.steps import find_steps
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.hardware import get
from neuron_tools.profile.reader import Profile

MESSAGES = ("Send", "Receive")
_RANKS = """
SELECT process_idx AS process, coalesce(rank, 0) AS rank FROM ProcessInfo
WHERE replica_of_rank IS NULL AND process_idx IN (SELECT process_idx FROM ExecutionInfo) ORDER BY rank
"""
_EXECUTIONS = """
SELECT execution_start_ts AS start_ns, execution_end_ts AS end_ns FROM ExecutionInfo WHERE process_idx = ?
"""
_COLLECTIVES = """
SELECT coalesce(trigger_start_ts, start_ts) AS ready_ns, start_ts AS start_ns, end_ts AS end_ns,
    operation, greatest(coalesce(input_size, 0), coalesce(output_size, 0)) AS bytes
FROM CcOp WHERE process_idx = ?
"""
_FLOPS = """
SELECT CAST(coalesce(sum(model_flops), 0) AS DOUBLE) AS flops FROM HloInstruction
WHERE process_idx = ? AND start_ts >= ? AND end_ts <= ? AND NOT coalesce(is_recomputed, false)
"""
_RECOMPUTED = """
SELECT start_ts AS start_ns, end_ts AS end_ns FROM FrameworkInstruction
WHERE process_idx = ? AND is_recomputed
"""
_PEAK = "SELECT coalesce(max(total_bytes), 0) AS peak FROM SystemProfileHbmUsage WHERE process_idx = ?"


@frozen
class RankStep:
    """One rank in the step.

    Attributes:
        compute_ns: Time in executions.
        recomputed_ns: The part of it that computes the forward pass again, for the backward pass.
        communication_ns: Time in which collectives or messages moved.
        exposed_ns: The part of the collectives in which nothing was computed.
        bubble_ns: Waiting for messages, and their moving, while neither computing nor a collective went on.
        other_ns: The rest of the step.
        moved_bytes: Of the larger of input and output of its collectives and messages.
        mfu: Of the Tensor engine's bf16 peak, 0 to 1, by the mathematics of the model, of which what
            is computed again is no part.
        peak_bytes: Device memory at its fullest, over the whole program.
    """

    rank: int
    compute_ns: int
    recomputed_ns: int
    communication_ns: int
    exposed_ns: int
    bubble_ns: int
    other_ns: int
    moved_bytes: int
    mfu: float
    peak_bytes: int


@frozen
class JobStep:
    """The step of the job.

    Attributes:
        step_ns: From the end of one optimizer step to the end of the next; all that ran where there is none.
        tokens_per_second: Of the whole job; None where the capture was not told how many a step has.
        mfu: Mean of the ranks that ran.
        hbm_bytes: Device memory of a rank.
        limit: What takes most of the step on the rank that computes longest.
    """

    step_ns: int
    job_ranks: int
    tokens_per_second: float | None
    mfu: float
    peak_bytes: int
    hbm_bytes: int
    limit: str
    ranks: tuple[RankStep, ...]

    @property
    def fits(self) -> bool:
        """Whether the fullest rank has room."""
        return self.peak_bytes <= self.hbm_bytes


def measure_job_step(profile: Profile) -> JobStep | None:
    """The typical step of a profile; None where nothing ran on the device."""
    window = find_steps(profile).opening_ns
    ranks = profile.query(_RANKS).to_pylist()
    if window is None or not ranks:
        return None
    physical = physical_cores(profile)
    core = get(str(profile.metadata.get("target", "trn2")), lnc=physical)
    step_ns, tokens = window[1] - window[0], profile.metadata.get("tokens_per_step")
    found = tuple(_rank(profile, row, window, physical * core.peak_tensor_flops) for row in ranks)
    return JobStep(
        step_ns=step_ns,
        job_ranks=int(profile.metadata.get("world_size") or profile.metadata.get("ranks") or len(found)),
        tokens_per_second=int(tokens) * 1e9 / step_ns if tokens and step_ns else None,
        mfu=sum(each.mfu for each in found) / len(found),
        peak_bytes=max(each.peak_bytes for each in found),
        hbm_bytes=core.hbm_bytes,
        limit=_limit(max(found, key=lambda each: each.compute_ns)),
        ranks=found,
    )


def _rank(profile: Profile, row: dict[str, Any], window: tuple[int, int], peak_flops: float) -> RankStep:
    process, step_ns = row["process"], window[1] - window[0]
    compute = _union(profile, _EXECUTIONS, process, window)
    calls = profile.query(_COLLECTIVES, [process])
    is_message = np.isin(np.array(calls["operation"].to_pylist(), dtype=object), MESSAGES)
    begin, ready, end = (calls[name].to_numpy() for name in ("start_ns", "ready_ns", "end_ns"))
    collectives = _within(begin[~is_message], end[~is_message], window)
    messages = _within(ready[is_message], end[is_message], window)
    moving = _within(begin, end, window)
    exposed = length_ns(collectives) - overlap_ns(collectives, compute)
    busy = union(*(np.concatenate(pair) for pair in zip(compute, collectives)))
    bubble = length_ns(messages) - overlap_ns(messages, busy)
    inside = (begin >= window[0]) & (begin < window[1])
    flops = profile.query(_FLOPS, [process, *window]).to_pylist()[0]["flops"]
    return RankStep(
        rank=row["rank"],
        compute_ns=length_ns(compute),
        recomputed_ns=length_ns(_union(profile, _RECOMPUTED, process, window)),
        communication_ns=length_ns(moving),
        exposed_ns=exposed,
        bubble_ns=bubble,
        other_ns=max(step_ns - length_ns(compute) - exposed - bubble, 0),
        moved_bytes=int(calls["bytes"].to_numpy()[inside].sum()),
        mfu=flops / (peak_flops * step_ns * 1e-9) if step_ns else 0.0,
        peak_bytes=profile.query(_PEAK, [process]).to_pylist()[0]["peak"],
    )


def _union(profile: Profile, query: str, process: int, window: tuple[int, int]) -> Union:
    rows = profile.query(query, [process])
    return _within(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy(), window)


def _within(starts: Ints, ends: Ints, window: tuple[int, int]) -> Union:
    """Spans cut to the window and joined."""
    low, high = np.maximum(starts, window[0]).astype(np.int64), np.minimum(ends, window[1]).astype(np.int64)
    inside = high > low
    return union(low[inside], high[inside])


def _limit(rank: RankStep) -> str:
    parts = {
        "computing": rank.compute_ns,
        "collectives that nothing hides": rank.exposed_ns,
        "the pipeline's bubble": rank.bubble_ns,
        "the host, or other ranks": rank.other_ns,
    }
    return max(parts, key=lambda name: parts[name])
