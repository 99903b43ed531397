"""torch.profiler traces of a training run with two streams, collectives, copies and synchronisations.

    python -m benchmarks.training_trace --events 1M -o /tmp/trace.json

All times are whole microseconds, to which HTA rounds. The host launches kernels in order; a stream runs them
in order; the host waits for the device now and then. Of a call's five events one is an operator, one its
launch, one the kernel, two the flow between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.kineto_trace import (
    DEVICE,
    END_OF_FLOW,
    EVENTS_PER_CALL,
    FLOW,
    HEAD,
    HOST,
    KERNEL,
    KERNELS,
    OPERATOR,
    OPERATORS,
    RUNTIME,
    SPAN,
    TAIL,
    run,
)

START_US = 4_410_492_006_134
COMPUTE, COMMUNICATION = 7, 20
CALLS_BETWEEN_COLLECTIVES, CALLS_BETWEEN_COPIES, CALLS_BETWEEN_WAITS = 16, 40, 600
COLLECTIVE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COPY = "Memcpy HtoD (Pinned -> Device)"


@dataclass
class _Clocks:
    """When the host and each stream are free, in microseconds."""

    host: int
    compute: int = 0
    communication: int = 0


def write(path: Path, events: int, seed: int = 0) -> None:
    """Make a trace of about that many events; another seed gives other times and names."""
    with path.open("w", buffering=1 << 22) as stream:
        stream.write(HEAD)
        stream.writelines(_calls(-(-events // EVENTS_PER_CALL), seed))
        stream.write(TAIL)


def _calls(count: int, seed: int) -> Iterator[str]:
    random = np.random.default_rng(seed)
    gaps, works = random.integers(2, 9, count).tolist(), random.integers(3, 34, count).tolist()
    names = random.integers(0, 1 << 16, count).tolist()
    clocks = _Clocks(START_US)
    for number in range(count):
        yield _call(number, gaps[number], works[number], names[number], clocks)


def _call(number: int, gap: int, work: int, name: int, clocks: _Clocks) -> str:
    """An operator with its launch and its kernel; sometimes the host waits after it."""
    start = clocks.host + gap
    launch, stop = start + 4, start + 11
    clocks.host = start + 14
    collective = number % CALLS_BETWEEN_COLLECTIVES == CALLS_BETWEEN_COLLECTIVES - 1
    copy = not collective and number % CALLS_BETWEEN_COPIES == 0
    if collective:
        stream, text, category, work = COMMUNICATION, COLLECTIVE, "kernel", 6 * work
        began = max(launch + 5, clocks.communication + 1)
        clocks.communication = began + work
    else:
        stream, text = COMPUTE, COPY if copy else KERNELS[name % len(KERNELS)]
        category = "gpu_memcpy" if copy else "kernel"
        began = max(launch + 5, clocks.compute + 1)
        clocks.compute = began + work
    runtime = "cudaMemcpyAsync" if copy else "cudaLaunchKernel"
    correlation = number + 1
    parts = [
        SPAN
        % ("cpu_op", OPERATORS[name % len(OPERATORS)], HOST, HOST, start, 14, OPERATOR % (number, number)),
        SPAN % ("cuda_runtime", runtime, HOST, HOST, launch, stop - launch, RUNTIME % (number, correlation)),
        FLOW % ("s", correlation, HOST, HOST, launch, ""),
        SPAN % (category, text, DEVICE, stream, began, work, KERNEL % (number, stream, correlation)),
        FLOW % ("f", correlation, DEVICE, stream, began, END_OF_FLOW),
    ]
    if number % CALLS_BETWEEN_WAITS == CALLS_BETWEEN_WAITS - 1:
        parts += _wait(number, clocks)
    return "".join(parts)


def _wait(number: int, clocks: _Clocks) -> list[str]:
    """The host waits for both streams."""
    start = clocks.host + 1
    stop = max(start + 5, clocks.compute + 2, clocks.communication + 2)
    clocks.host = stop
    correlation = (1 << 40) + number
    sync = f'"External id": 0, "stream": -1, "correlation": {correlation}, "device": 0, "context": 1'
    return [
        SPAN % ("cuda_runtime", "cudaDeviceSynchronize", HOST, HOST, start, stop - start,
                 RUNTIME % (number, correlation)),
        SPAN % ("cuda_sync", "Context Sync", DEVICE, COMPUTE, start, stop - 1 - start, sync),
    ]  # fmt: skip


if __name__ == "__main__":
    run(write, __doc__)
