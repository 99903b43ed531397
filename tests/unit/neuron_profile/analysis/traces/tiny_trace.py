"""A tiny imported trace with known sums, written by the real writer; times are microseconds x 1000.

thread 1   |op 0-40: launch 5-8 |op 50-60: launch 52-55 (collective)|sync 100-200|op 210-230: launch 215-218|
stream 7      kernel 10-60            kernel 70-90                                    kernel 220-300
stream 20                                         all-reduce 80-190
"""

from __future__ import annotations

from pathlib import Path

import neuron_tools
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.writer import ProfileWriter

THREAD, DEVICE, COMPUTE, COMMUNICATION = 0, 1, 2, 3
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)"
ROWS = [  # track, name, category, start, end, correlation
    (THREAD, "aten::mm", "cpu_op", 0, 40, None),
    (THREAD, "cudaLaunchKernel", "cuda_runtime", 5, 8, 1),
    (THREAD, "cudaLaunchKernel", "cuda_runtime", 20, 22, 2),
    (THREAD, "all_reduce", "cpu_op", 50, 60, None),
    (THREAD, "cudaLaunchKernel", "cuda_runtime", 52, 55, 3),
    (THREAD, "cudaDeviceSynchronize", "cuda_runtime", 100, 200, None),
    (THREAD, "aten::mm", "cpu_op", 210, 230, None),
    (THREAD, "cudaLaunchKernel", "cuda_runtime", 215, 218, 4),
    (COMPUTE, "gemm", "kernel", 10, 60, 1),
    (COMPUTE, "gelu", "kernel", 70, 90, 2),
    (COMMUNICATION, REDUCE, "kernel", 80, 190, 3),
    (COMPUTE, "gemm", "kernel", 220, 300, 4),
]


def open_trace(folder: Path, rows: list = ROWS) -> Profile:
    """The profile of the trace, opened."""
    path = folder / "trace.nprof"
    writer = ProfileWriter(path, {"command": ["import"]})
    kinds = ["thread", "other", "stream", "stream"]
    writer.append(
        "TraceTrack",
        {
            "track_idx": [0, 1, 2, 3], "process_idx": [0] * 4, "kind": kinds,
            "name": ["thread 1", "GPU 0", "stream 7", "stream 20"],
            "parent_track_idx": [None, None, 1, 1], "device_idx": [None, 0, 0, 0],
        },
    )  # fmt: skip
    tracks, names, categories, starts, ends, correlations = map(list, zip(*rows))
    writer.append(
        "TraceSpan",
        {
            "id": list(range(len(rows))), "process_idx": [0] * len(rows), "track_idx": tracks, "name": names,
            "category": categories, "correlation_id": correlations,
            "start_ts": [1000 * start for start in starts], "end_ts": [1000 * end for end in ends],
            "duration_ns": [1000 * (end - start) for start, end in zip(starts, ends)],
        },
    )  # fmt: skip
    writer.close(True)
    return neuron_tools.open_profile(path)
