"""How keys are spelt where AWS's documentation and the output of its hosts differ, and in what shape.

Sources: the neuron-monitor user guide of aws-neuron-sdk (documented); reports of inf1 hosts of 2023 and of an
inf2 host with runtime 2.30 in public notes (observed).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from neuron_tools.frozen import frozen

Spelling = Literal["observed", "documented", "both"]
SPELLINGS: tuple[Spelling, ...] = ("observed", "documented", "both")
# Public readers expect keys of either kind, some even of both (docs/monitor.md).
DEFAULT_SPELLING: Spelling = "both"


@frozen
class Keys:
    """The keys of one spelling on one generation of devices.

    Attributes:
        flops: Names of a core's FLOP/s; none on first-generation hosts, whose reports lack it.
        device_memory: Names of the device's part of a process's memory.
        has_address: Whether a process has the documented "address".
        has_device_facts: Whether the hardware is described beyond the two counts.
    """

    flops: tuple[str, ...]
    device_memory: tuple[str, ...]
    has_address: bool
    has_device_facts: bool


@lru_cache(maxsize=32)
def keys_of(spelling: Spelling, architecture: str) -> Keys:
    """The keys for devices of an architecture, e.g. "NDv3".

    Reports of Inf1 hosts stayed in an older shape, which is what they are given here too.
    """
    if architecture == "NDv1" and spelling == "observed":
        return Keys((), ("neuron_device",), has_address=False, has_device_facts=False)
    flops = {"observed": ("effective_flops",), "documented": ("flops",), "both": ("flops", "effective_flops")}
    memory = {"observed": ("device",), "documented": ("neuron_device",), "both": ("neuron_device", "device")}
    return Keys(
        flops=flops[spelling],
        device_memory=memory[spelling],
        has_address=spelling != "observed",
        has_device_facts=True,
    )
