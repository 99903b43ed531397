"""Which analyses there are; none is loaded to tell."""

from __future__ import annotations

from neuron_tools.doors import Door

_HERE = "neuron_profile.analysis.analyses"
ANALYSES = Door(
    "neuron_profile.analyses",
    "analysis",
    (
        ("idle", f"{_HERE}:IDLE"),
        ("host", f"{_HERE}:HOST"),
        ("kernels", f"{_HERE}:KERNELS"),
        ("queue", f"{_HERE}:QUEUE"),
        ("graphs", f"{_HERE}:GRAPHS"),
        ("triton", f"{_HERE}:TRITON"),
        ("counters", f"{_HERE}:COUNTERS"),
        ("input", f"{_HERE}:INPUT"),
        ("roofline", f"{_HERE}:ROOFLINE"),
        ("critical-path", f"{_HERE}:CRITICAL_PATH"),
        ("memory", f"{_HERE}:MEMORY"),
        ("communication", f"{_HERE}:COMMUNICATION"),
        ("step", f"{_HERE}:STEP"),
        ("expected", f"{_HERE}:EXPECTED"),
    ),
)
"""By the name that `neuron-profile analyze` takes, each a `ProfileAnalysis`."""
