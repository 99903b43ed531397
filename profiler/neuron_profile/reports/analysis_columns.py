"""How each list of an analysis's result is shown: what it tells, its headings, which numbers are shares."""

from __future__ import annotations

from collections.abc import Mapping

LEADS: Mapping[str, str] = {
    "EngineTime": "Each engine's time from its core's first execution to its last. Engines wait for a DMA, "
    "for another engine's semaphore, for issue and queues; a core without an execution waits for the host.",
    "HostActivity": "What the host did while the device had nothing to do, by the user's own line. "
    "A training program's first step does not count.",
    "StreamTime": "Each stream's time from its first span to its last. A gap is the host's where the next "
    "kernel was not launched yet, a launch's where it is short, and something else's otherwise.",
    "StreamQueue": "What was launched on each stream and had not begun yet. A delay reaches from the end of "
    "the host's call to the start on the device; a short launch took the host longer than the device.",
    "PathEntry": "What made the program take as long as it did, one after the other; the parts add up to its "
    "time. What is not listed could take longer without delaying the end.",
    "CacheUse": "The most blocks of the KV cache that requests held at once, in windows of equal length.",
    "Point": "Each is bound by what the device computes or by the memory that moves its bytes, whichever "
    "takes longer; Reached is how much of that limit it attains.",
    "MemoryPeak": "When a device's memory was fullest.",
    "CategoryBytes": "What that memory was held for.",
    "MemoryHolder": "Who held it: parameters and buffers by name, others by the place that took them.",
    "OnChipUse": "Parts of the memories on the core that were in use.",
    "TensorSize": "Tensors in HBM, the largest first; loads: how often all of one is loaded in an execution.",
    "Spill": "What did not fit SBUF, was saved to HBM and loaded back.",
    "CollectiveKind": "Collectives by kind and size; waited: until the last rank had joined.",
    "DeviceTime": "Each device's time: computing, else communicating, else copying, else idle.",
    "Kernel": "Kernels by the time they take.",
    "GraphUse": "Graphs by device time; the operators of their nodes come from the recording where the trace "
    "has it (capture), else from kernels of the same name outside of graphs (names).",
    "GraphOperator": "What the nodes of each operator did.",
    "TritonKernel": "Triton kernels by device time; replayed: runs that a graph launched.",
    "CountedOperator": "Operators by the FLOPs of their counted instructions.",
    "OperatorCounter": "Each counter over an operator's kernels.",
    "InputStep": "Each step; input: the host waited for its next batch; starved: no device had work then.",
    "InputStage": "Spans of the input pipeline by their time.",
    "RankTime": "Each rank from its first execution to its last; waited: in collectives, until the last rank "
    "had joined. A straggler's own time is over 1.05 times the median.",
    "Bystander": "Processes that used no device; they are not compared.",
    "EngineSpread": "Busy time of each engine over the ranks.",
    "OperationSpread": "Device time of each operation over the ranks.",
    "CollectiveCost": "Collectives of all groups; transfer: what the rank that joined last took.",
}
"""One or two sentences above a table, by the class of its rows."""

SHARE_OF_TOTAL = "of_total_ns"
"""A path's time once more, told as its part of the whole."""

HEADINGS: Mapping[str, Mapping[str, str]] = {
    "": {
        "hbm_bytes_per_second": "HBM bandwidth",
        "sbuf_bytes_per_second": "SBUF bandwidth",
        "psum_bytes_per_second": "PSUM bandwidth",
        "peak_flops": "Peak",
        "throttled_flops": "Throttled",
        "tokens_per_second": "Tokens/s",
    },
    "Request": {"is_aborted": "Aborted"},
    "CacheUse": {"used_blocks": "Used", "of_blocks": "of all"},
    "EngineTime": {
        "window_ns": "Total",
        "dma_ns": "Waits: DMA",
        "engine_ns": "engine",
        "other_ns": "issue",
        "host_ns": "host",
        "finished_ns": "Done early",
    },
    "StreamTime": {
        "window_ns": "Total",
        "host_ns": "Not launched",
        "launch_ns": "Launching",
        "other_ns": "Other",
    },
    "StreamQueue": {
        "mean_waiting": "Waiting: mean",
        "most_waiting": "most",
        "median_delay_ns": "Delay: median",
        "slowest_delay_ns": "99 of 100",
        "short": "Short",
        "call_ns": "Host time",
    },
    "HostActivity": {
        "kind": "Doing",
        "idle_ns": "Device idle",
        SHARE_OF_TOTAL: "of all",
        "workers_at": "Workers at",
    },
    "PathEntry": {"path_ns": "On the path", SHARE_OF_TOTAL: "of all", "count": "Times"},
    "Point": {"charged_ns": "Charged", "bound": "Bound by", "of_bound": "Reached"},
    "LayoutResult": {"tokens_per_second": "Tokens/s", "on_front": "Front"},
    "MemoryPeak": {"device_idx": "Device", "time_ns": "At"},
    "CategoryBytes": {"byte_count": "Held", "of_peak": "of all"},
    "MemoryHolder": {"byte_count": "Held"},
    "OnChipUse": {"peak_at_ns": "At"},
    "TensorSize": {"byte_count": "Size"},
    "CollectiveKind": {
        "duration_ns": "Time",
        "algorithm_bandwidth": "Rate",
        "bus_bandwidth": "Bus rate",
        "wait_ns": "Waited",
    },
    "DeviceTime": {
        "window_ns": "Total",
        "exposed_communication_ns": "Communicating alone",
        "exposed_memory_ns": "Copying alone",
        "communication_ns": "Communicating",
        "hidden_ns": "hidden",
    },
    "Kernel": {"total_ns": "Time", "deviation_ns": "Deviation"},
    "OperationSpread": {"most_rank": "by rank"},
    "GraphUse": {"device_ns": "Device time", "call_ns": "Host time", "operators_from": "Operators from"},
    "GraphOperator": {"device_ns": "Device time"},
    "TritonKernel": {"device_ns": "Device time", "file": "Source"},
    "InputStep": {"duration_ns": "Total"},
}
"""Headings that do not follow from the field's name, by the class of the rows; "" = of the result itself."""

SHARES_OF: Mapping[str, str] = {
    "EngineTime": "window_ns",
    "StreamTime": "window_ns",
    "DeviceTime": "window_ns",
    "InputStep": "duration_ns",
}
"""Classes whose other times are told as parts of one of them."""

FRACTIONS = frozenset({"of_bound", "of_peak", "peak", "mean", "mfu", "of_blocks"})
"""Fields that are parts of a whole, 0 to 1."""

PLACES = frozenset({"inside", "workers_at"})
"""Fields that name a place in a source file."""

HIDDEN_WHERE_EMPTY = frozenset(
    {
        "process",
        "bubble_ns",
        "tokens_per_second",
        "handover_ns",
        "is_aborted",
        "core",
        "sbuf_bytes",
        "psum_bytes",
        "device_idx",
        "host",
        "place",
        "layer",
        "dtype",
        "straggler",
        "loads",
        "algorithm",
        "tensor",
        "detail",
        "inside",
        "workers_at",
        "operators_from",
        "warps",
        "stages",
        "grid",
        "replayed",
        "backend",
        "kwargs",
        "recomputed_ns",
        "step",
    }
)
"""Fields that say nothing where they are empty, or 0, in all rows."""
