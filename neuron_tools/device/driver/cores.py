"""Which physical cores of the machine a process's `neuron:0`, `neuron:1`, ... are."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from neuron_tools.frozen import frozen

VISIBLE_VARIABLE = "NEURON_RT_VISIBLE_CORES"
COUNT_VARIABLE = "NEURON_RT_NUM_CORES"


@frozen
class CoreMap:
    """Physical core of each device index, and those that no other process should be given."""

    numbers: tuple[int, ...]
    reserved: tuple[int, ...] = ()

    def core_id(self, index: int, core_count: int) -> int:
        """The core of `neuron:index` on a machine with `core_count` cores."""
        known = self.numbers[index] if index < len(self.numbers) else index
        return known % core_count


def parse_cores(text: str) -> tuple[int, ...]:
    """The cores that "0-3,6" names; () where it names none."""
    cores: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        try:
            cores.extend(range(int(first), int(last or first) + 1))
        except ValueError:
            return ()
    return tuple(cores)


def first_core(device_count: int, environment: Mapping[str, str] = os.environ) -> int:
    """The core of the machine that `neuron:0` of this process is.

    A process that was given one core and not told which has the one of its `LOCAL_RANK`.
    """
    visible = parse_cores(environment.get(VISIBLE_VARIABLE, ""))
    if visible:
        return visible[0]
    local_rank = environment.get("LOCAL_RANK", "")
    return int(local_rank) if device_count == 1 and local_rank.isdecimal() else 0


def core_map(
    device_count: int,
    taken: Collection[int],
    core_count: int,
    environment: Mapping[str, str] = os.environ,
) -> CoreMap:
    """The cores of this process, as the runtime gives them.

    Cores that `NEURON_RT_VISIBLE_CORES` names are those. A process that only asks for a number gets the
    first block of free ones; the ranks of one torchrun, each of which sees the cores of all, share one.

    Args:
        device_count: Cores that the process sees.
        taken: Cores that other processes reserved.
        core_count: Of the machine.
    """
    visible = parse_cores(environment.get(VISIBLE_VARIABLE, ""))
    if visible:
        return CoreMap(visible, visible)
    shares = int(environment.get("LOCAL_WORLD_SIZE", "1") or 1) > 1
    if not environment.get(COUNT_VARIABLE) or (shares and device_count > 1):
        return CoreMap(tuple(range(device_count)))
    free = (first for first in range(core_count) if not set(range(first, first + device_count)) & set(taken))
    first = next((first for first in free if first + device_count <= core_count), 0)
    block = tuple(range(first, first + device_count))
    return CoreMap(block, block)
