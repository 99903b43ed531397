"""Collectives among the kernels of an imported trace: by kind and size, and what of them computing hides.

torch.profiler tells the size of a collective with its kernel (`In msg nelems`, `dtype`, `Group size`); where
a trace does not, sizes and bandwidths are unknown and only times are told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from neuron_profile.analysis.communication import CollectiveKind, Communication, measure_communication
from neuron_profile.analysis.traces.breakdown import device_times
from neuron_profile.analysis.traces.device_spans import DEVICE_SPANS, Kind, load_device_spans
from neuron_profile.analysis.traces.stored_spans import distinct
from neuron_tools.profile.reader import Profile

_ARGUMENT = "json_extract_string(arguments_json, '$.\"{key}\"')"
_ASKED = {
    "told": "Collective name", "inputs": "In msg nelems", "outputs": "Out msg nelems", "dtype": "dtype",
    "ranks": "Group size",
}  # fmt: skip
_COLLECTIVES = f"""
WITH {DEVICE_SPANS}
SELECT name, {", ".join(f"{_ARGUMENT.format(key=key)} AS {name}" for name, key in _ASKED.items())},
    count(*) AS calls, CAST(sum(end_ts - start_ts) AS BIGINT) AS duration_ns,
    min(end_ts - start_ts) AS shortest_ns
FROM device WHERE name IN (SELECT unnest($names)) GROUP BY ALL ORDER BY duration_ns DESC, name
"""
_WORDS = re.compile(
    r"(all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|send_?recv|broadcast|reduce|send|recv|barrier|"
    r"collective-permute|all-reduce|reduce-scatter|all-gather|all-to-all)",
    re.IGNORECASE,
)
_ALGORITHM = re.compile(r"_(RING|TREE|COLLNET[A-Z_]*|NVLS[A-Z_]*|PAT)(?:_(LL128|LL|SIMPLE))?", re.IGNORECASE)
_NAMES = {
    "allreduce": "AllReduce", "reducescatter": "ReduceScatter", "allgather": "AllGather",
    "alltoall": "AllToAll", "sendrecv": "SendRecv", "broadcast": "Broadcast", "reduce": "Reduce",
    "send": "Send", "recv": "Recv", "barrier": "Barrier", "collectivepermute": "Permute",
}  # fmt: skip
_DTYPE_BYTES = {
    "float": 4, "float32": 4, "int": 4, "int32": 4, "bfloat16": 2, "half": 2, "float16": 2, "double": 8,
    "float64": 8, "long": 8, "int64": 8, "byte": 1, "char": 1, "int8": 1, "uint8": 1, "bool": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


def _once(ranks: int) -> float:
    """Of collectives that every byte passes once."""
    return 1.0


# Bytes that each rank's link carries for each byte of the larger side, of n ranks: the factors of NVIDIA's
# nccl-tests, doc/PERFORMANCE.md.
_BUS: Mapping[str, Callable[[int], float]] = {
    "AllReduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "ReduceScatter": lambda ranks: (ranks - 1) / ranks,
    "AllGather": lambda ranks: (ranks - 1) / ranks,
    "AllToAll": lambda ranks: (ranks - 1) / ranks,
}


def communication_of(profile: Profile) -> Communication:
    """The collectives of a capture, or else those of an imported trace."""
    found = measure_communication(profile)
    if found.kinds or not profile.tables().get("TraceSpan"):
        return found
    return measure_trace_communication(profile)


def measure_trace_communication(profile: Profile) -> Communication:
    """Collectives by kind and size, and what of them overlaps with computing."""
    spans = load_device_spans(profile)
    named = sorted(distinct(spans.name[spans.kind == int(Kind.COMMUNICATION)])[0].tolist())
    if not named:
        return Communication((), 0, 0)
    rows = profile.query(_COLLECTIVES, {"names": [spans.names[place] for place in named]}).to_pylist()
    times = device_times(spans)
    return Communication(
        tuple(_kind(row) for row in rows), sum(time.communication_ns for time in times),
        sum(time.hidden_ns for time in times),
    )  # fmt: skip


def _kind(row: Mapping[str, Any]) -> CollectiveKind:
    operation = operation_name(row["told"] or row["name"])
    size = _DTYPE_BYTES.get(str(row["dtype"] or "").lower().removeprefix("c10::"))
    inputs, outputs = (_bytes(row[name], size) for name in ("inputs", "outputs"))
    largest = max((part for part in (inputs, outputs) if part), default=0)
    ranks = _whole(row["ranks"])
    seconds = row["duration_ns"] / row["calls"] / 1e9
    rate = largest / seconds if largest and seconds else None
    factor = _BUS.get(operation, _once)(ranks) if ranks else None
    return CollectiveKind(
        operation, _algorithm(row["name"]), inputs, outputs, row["calls"], row["duration_ns"],
        row["shortest_ns"], rate, None if rate is None or factor is None else rate * factor, None,
    )  # fmt: skip


def operation_name(text: str) -> str:
    """The kind of a collective: "AllReduce" of `ncclDevKernel_AllReduce_Sum_bf16_RING_LL` and `allreduce`."""
    found = _WORDS.search(text)
    word = re.sub(r"[_-]", "", found.group(1)).lower() if found else ""
    return _NAMES.get(word, text)


def _algorithm(kernel: str) -> str:
    found = _ALGORITHM.search(kernel)
    return " ".join(part.upper() for part in found.groups() if part) if found else ""


def _bytes(elements: str | None, size: int | None) -> int | None:
    number = _whole(elements)
    return None if number is None or size is None else number * size


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 19 else None
