"""The command of a job of which not all ranks run."""

from __future__ import annotations

from neuron_profile.launch.rank_processes import AUTO, RankPlan
from neuron_tools.capture.options import CaptureOptions, simulated_core
from neuron_tools.errors import UsageError
from neuron_tools.hardware import device_of

MOST_DEVICES = 64
"""What a process sees at most (`device/csrc/device.h`): a larger instance is told as several hosts."""
_LAUNCHERS = ("torchrun",)


def rank_command(arguments: tuple[str, ...], options: CaptureOptions, run_ranks: str) -> tuple[str, ...]:
    """What to run in place of a command: itself, or one process for each rank that is to run.

    Args:
        run_ranks: "auto", or ranks with commas between.

    Raises:
        UsageError: A rank is not one of the job, or the command starts ranks itself.
    """
    if not options.world_size:
        return arguments
    if arguments[0].rpartition("/")[2] in _LAUNCHERS:
        raise UsageError(
            f"With --world-size the capture starts the ranks: write 'python SCRIPT', not {arguments[0]}."
        )
    core = simulated_core(options)
    per_node = max(device_of(core).physical_core_count // core.logical_core_size, 1)
    per_node = min(per_node, MOST_DEVICES)
    return RankPlan(options.world_size, _ranks(run_ranks, options.world_size), per_node).command(arguments)


def _ranks(text: str, world_size: int) -> tuple[int, ...] | None:
    if text == AUTO:
        return None
    try:
        ranks = sorted({int(each) for each in text.split(",")})
    except ValueError:
        raise UsageError(f"--run-ranks {text}: write ranks with commas between, or auto.") from None
    if ranks[0] < 0 or ranks[-1] >= world_size:
        raise UsageError(f"--run-ranks {text}: the job's ranks are 0 to {world_size - 1}.")
    return tuple(ranks)
