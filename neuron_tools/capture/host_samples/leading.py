"""Which thread the device's work depends on at each tick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neuron_tools.capture.host_samples.kinds import BACKWARD, Activity
from neuron_tools.capture.host_samples.reading import SampledStack
from neuron_tools.records.host_samples import SampleKind

_JOINING = ("join", "_wait_for_tstate_lock")
_ENDING = "_shutdown"
"""What Python runs once the script has ended: it joins threads, which is nobody's waiting."""


def leads(
    records: npt.NDArray[np.void],
    which: npt.NDArray[np.intp],
    activities: Sequence[Activity],
    stacks: Sequence[SampledStack],
) -> npt.NDArray[np.bool_]:
    """Whether each record's thread leads: the main one, unless that waits for another which works.

    In a backward pass autograd's thread may run hooks; a main thread that joins another hands over to it. One
    that has ended leads no more.

    Args:
        records: Samples of one process.
        which: The stack of each, as a position in the lists.
    """
    is_main = records["main"].astype(bool)
    hands_over = np.array([_hands_over(stack) for stack in stacks], bool)[which] & is_main
    leading: npt.NDArray[np.bool_] = is_main & ~np.array([_has_ended(stack) for stack in stacks], bool)[which]
    waits = np.array([activity.kind in ("lock", "sleep") for activity in activities], bool)[which]
    candidates = ~is_main & ~waits & (records["kind"] == int(SampleKind.THREAD))
    # Of several threads that work the one that was met first leads.
    order = np.lexsort((records["thread"], records["tick"]))
    order = order[candidates[order]]
    ticks, first = np.unique(records["tick"][order], return_index=True)
    successor = dict(zip(ticks.tolist(), order[first].tolist()))
    for place in np.flatnonzero(hands_over):
        other = successor.get(int(records["tick"][place]))
        if other is not None:
            leading[place], leading[other] = False, True
    return leading


def _hands_over(stack: SampledStack) -> bool:
    functions = [frame.function.rpartition(".")[2] for frame in stack.frames[:2]]
    return any(function == BACKWARD or function in _JOINING for function in functions)


def _has_ended(stack: SampledStack) -> bool:
    if not stack.frames:
        return False
    outermost = stack.frames[-1]
    return outermost.function == _ENDING and outermost.file.endswith("/threading.py")
