"""torch.profiler traces of any length, with the structure of a GPU training run, made quickly.

    python -m benchmarks.kineto_trace --events 1M -o /tmp/trace.json

Of five events one is an operator, one its launch, one the kernel, two the flow between them. Texts and
arguments are as long as in real traces, about 290 bytes an event.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.synthetic_profile import parse_count

EVENTS_PER_CALL = 5
CALLS_PER_BLOCK = 20_000
START_US = 4_410_492_006_134.0
CALL_US = 40
KERNELS = tuple(
    f"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_{name}<float>,"
    " at::detail::Array<char*, 3> >(int, at::native::FillFunctor<float>, at::detail::Array<char*, 3>)"
    for name in ("add", "mul", "relu", "copy", "gelu", "softmax", "norm", "fill")
)
OPERATORS = tuple(
    f"aten::{name}" for name in ("mm", "addmm", "relu", "add", "mul", "copy_", "view", "bmm", "linear", "t")
)
HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "device"}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "displayTimeUnit": "ms", "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
  {"ph": "M", "name": "process_name", "ts": 4410492006134, "pid": 7739, "tid": 0,
   "args": {"name": "python"}},
  {"ph": "M", "name": "process_labels", "ts": 4410492006134, "pid": 0, "tid": 0,
   "args": {"labels": "GPU 0"}}"""
TAIL = '\n  ], "traceName": "trace.json" }\n'
SPAN = """,
  {
    "ph": "X", "cat": "%s", "name": "%s", "pid": %s, "tid": %s,
    "ts": %s, "dur": %s,
    "args": {
      %s
    }
  }"""
"""Category, name, process, thread, start and duration in microseconds, arguments."""
FLOW = """,
  {
    "ph": "%s", "id": %s, "pid": %s, "tid": %s, "ts": %s,
    "cat": "ac2g", "name": "ac2g"%s
  }"""
"""Phase, number, process, thread, time in microseconds, what follows."""
HOST, DEVICE, STREAM = 7739, 0, 7
END_OF_FLOW = ', "bp": "e"'
OPERATOR = (
    '"External id": %d,"Record function id": 0, "Concrete Inputs": ["", "", ""], '
    '"Input type": ["float", "float", "float"], "Input Strides": [[4096, 1], [4096, 1], [1]], '
    '"Input Dims": [[4, 4096], [4096, 4096], [4096]], "Ev Idx": %d'
)
RUNTIME = '"External id": %d, "cbid": 211, "correlation": %d'
KERNEL = (
    '"External id": %d, "queued": 0, "device": 0, "context": 1, "stream": %d, "correlation": %d, '
    '"registers per thread": 32, "shared memory": 0, "blocks per SM": 1.2, "warps per SM": 4.8, '
    '"grid": [128, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 8'
)
_TIME = "%.3f"
CALL = "".join(
    [
        SPAN % ("cpu_op", "%s", HOST, HOST, _TIME, "18.123", OPERATOR),
        SPAN % ("cuda_runtime", "cudaLaunchKernel", HOST, HOST, _TIME, "2.500", RUNTIME),
        FLOW % ("s", "%d", HOST, HOST, _TIME, ""),
        SPAN % ("kernel", "%s", DEVICE, STREAM, _TIME, _TIME, KERNEL),
        FLOW % ("f", "%d", DEVICE, STREAM, _TIME, END_OF_FLOW),
    ]
)


def write(path: Path, events: int) -> None:
    """Makes a trace of that many events, and two of metadata."""
    with path.open("w", buffering=1 << 22) as stream:
        stream.write(HEAD)
        for block in _blocks(-(-events // EVENTS_PER_CALL)):
            stream.write(block)
        stream.write(TAIL)


def _blocks(calls: int) -> Iterator[str]:
    random = np.random.default_rng(0)
    for first in range(0, calls, CALLS_PER_BLOCK):
        numbers = range(first, min(first + CALLS_PER_BLOCK, calls))
        kinds = random.integers(0, 1 << 16, len(numbers)).tolist()
        yield "".join(_call(number, kind) for number, kind in zip(numbers, kinds))


def _call(number: int, kind: int) -> str:
    start = START_US + CALL_US * number
    launch, kernel = start + 4.25, start + 12.5
    return CALL % (
        OPERATORS[kind % len(OPERATORS)], start, number, number, launch, number, number, number, launch,
        KERNELS[kind % len(KERNELS)], kernel, 2 + kind % 20, number, STREAM, number, number, kernel,
    )  # fmt: skip


def run(write: Callable[[Path, int], object], description: str | None) -> None:
    """Makes a trace from the command line.

    Args:
        write: Writes a trace with so many events to a path.
        description: What it writes.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--events", type=parse_count, default=1_000_000)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    write(options.output, options.events)


if __name__ == "__main__":
    run(write, __doc__)
