"""The times of one execution of a Program: what the simulator finds and everything else reads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.frozen import frozen

THROTTLE_DTYPE = np.dtype([("start_ps", "i8"), ("duration_ps", "i8"), ("k", "i4"), ("n", "i4")])
"""One stretch of time during which the Tensor engine may stream k of n cycles."""


@frozen
class ThrottleState:
    """Where the Tensor engine stands in its utilisation window: carried from one execution to the next.

    Attributes:
        left_ps: Until the window closes.
        k: Of every `core.throttle_steps` cycles, those that may stream in this window.
        busy_ps: Full-rate streaming in this window so far.
    """

    left_ps: int
    k: int
    busy_ps: int


@frozen
class Simulation:
    """Times of one execution, picoseconds from its start.

    Attributes:
        start_ps: (instructions,) when each began to execute.
        end_ps: (instructions,) when its result was written. Instructions of one engine overlap: they are
            pipelined.
        ready_ps: (instructions,) when it was at the head of its engine, with the engine and its same-engine
            operands ready; start - ready is the time it waited for semaphores (or for a full DMA queue).
        wait_cause: (instructions,) int32, what decided the start: the instruction (>= 0) or DMA (-2 - row)
            whose completion it waited for, or the instruction that had a memory port it needs; -1 where
            nothing delayed it.
        dma_trigger_ps: (dmas,) when the queue got it: the start of its trigger instruction, plus the time
            software takes to make descriptors.
        dma_start_ps: (dmas,) first packet; of a collective, when the last rank had joined.
        dma_end_ps: (dmas,) completion: last byte and semaphore written.
        throttle: (stretches,) of THROTTLE_DTYPE, without gaps from 0 to the end of the execution.
        duration_ps: The end of the last instruction or DMA.
        throttle_state: The Tensor engine's limit when the execution ends.
        second: The same of the second physical core of a logical one; `duration_ps` is then the later end.
    """

    start_ps: Ints
    end_ps: Ints
    ready_ps: Ints
    wait_cause: Int32s
    dma_trigger_ps: Ints
    dma_start_ps: Ints
    dma_end_ps: Ints
    throttle: npt.NDArray[np.void]
    duration_ps: int
    throttle_state: ThrottleState | None = None
    second: Simulation | None = None

    @property
    def of_cores(self) -> tuple[Simulation, ...]:
        """The times of each physical core."""
        return (self,) if self.second is None else (self, self.second)
