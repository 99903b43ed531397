"""Events of torch.profiler traces as Kineto writes them, for documents made in a test; microseconds."""

from __future__ import annotations

from typing import Any

HOST, DEVICE, STREAM = 4242, 0, 7


def host(category: str, name: str, start: int, duration: int, **arguments: Any) -> dict[str, Any]:
    """A span of the host's only thread."""
    place = {"pid": HOST, "tid": HOST, "ts": start, "dur": duration}
    return {"ph": "X", "cat": category, "name": name, **place, "args": arguments}


def operator(name: str, start: int, duration: int, **arguments: Any) -> dict[str, Any]:
    """An operator."""
    return host("cpu_op", name, start, duration, **{"External id": start, **arguments})


def call(name: str, start: int, correlation: int, duration: int = 2, **arguments: Any) -> dict[str, Any]:
    """A call of the runtime, or of the driver where its name says so."""
    is_driver = name.startswith("cu") and not name.startswith("cuda")
    category = "cuda_driver" if is_driver else "cuda_runtime"
    return host(category, name, start, duration, correlation=correlation, **arguments)


def kernel(
    name: str, start: int, duration: int, correlation: int, category: str = "kernel", **arguments: Any
) -> dict[str, Any]:
    """Work on the device's only stream."""
    told = {"device": 0, "context": 1, "stream": STREAM, "correlation": correlation, **arguments}
    place = {"pid": DEVICE, "tid": STREAM, "ts": start, "dur": duration}
    return {"ph": "X", "cat": category, "name": name, **place, "args": told}


def document(*events: dict[str, Any]) -> dict[str, Any]:
    """A trace of some events."""
    labels = {"ph": "M", "name": "process_labels", "pid": DEVICE, "tid": 0, "args": {"labels": "GPU 0"}}
    return {"schemaVersion": 1, "traceEvents": [labels, *events]}
