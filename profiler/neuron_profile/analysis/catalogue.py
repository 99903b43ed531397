"""Which analyses there are; none is loaded to tell."""

from __future__ import annotations

from neuron_tools.doors import Door

_NAMES = (
    "idle", "host", "kernels", "queue", "graphs", "triton", "counters", "input", "roofline", "critical-path",
    "memory", "communication", "step", "requests", "expected",
)  # fmt: skip
ANALYSES = Door(
    "neuron_profile.analyses",
    "analysis",
    tuple((name, f"neuron_profile.analysis.analyses:{name.upper().replace('-', '_')}") for name in _NAMES),
)
"""By the name that `neuron-profile analyze` takes, each a `ProfileAnalysis`."""
