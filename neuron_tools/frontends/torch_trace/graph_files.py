"""Traced models as bytes: libraries write them to files and hand them to the compiler, both in one process.

The bytes are the model's StableHLO behind a line that names the trace; they stand for it in this process,
which keeps the graphs of its models and none of their weights.
"""

from __future__ import annotations

import hashlib
import json

from neuron_tools.frontends.torch_compile.graph_lowering import graph_text
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.ranked_program import RankedTrace

_traced: dict[str, RankedTrace] = {}


def graph_bytes(trace: RankedTrace) -> bytes:
    """What stands for a trace."""
    arguments = [StoredTensor.of(value) for value in trace.segment.arguments]
    text = graph_text(trace.segment.module.graph, arguments).text.encode()
    name = hashlib.sha256(text + repr(trace.call).encode()).hexdigest()
    _traced[name] = trace.without_values()
    return json.dumps({"trace": name}).encode() + b"\n" + text


def trace_of(data: bytes) -> RankedTrace:
    """The trace that bytes stand for.

    Raises:
        TraceError: They are others, or were written by another process.
    """
    try:
        name = json.loads(data.split(b"\n", 1)[0])["trace"]
    except (ValueError, TypeError, KeyError):
        name = ""
    if name not in _traced:
        raise TraceError(
            "These bytes are no graph that this process traced: trace and compile a model in one process."
        )
    return _traced[name]
