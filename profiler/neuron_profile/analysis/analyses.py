"""The analyses by name."""

from __future__ import annotations

from typing import Any

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.communication import measure_communication
from neuron_profile.analysis.critical_path import find_critical_path
from neuron_profile.analysis.idle_reasons import idle_reasons
from neuron_profile.analysis.memory import measure_memory
from neuron_profile.analysis.roofline import make_roofline
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.reader import Profile


def run_analysis(profile: Profile, name: str, level: str = "operation") -> Any:
    """The result of one analysis: a dataclass, or a tuple of them.

    Raises:
        NeuronToolsError: The profile lacks the data it needs.
    """
    result: Any
    if name == "idle":
        result, lacks = idle_reasons(profile), "instructions and executions"
    elif name == "roofline":
        result, lacks = make_roofline(profile, level), "HLO operations"
        result = result if result.points else None
    elif name == "critical-path":
        result, lacks = find_critical_path(Context(profile)), "the programs that ran"
    elif name == "memory":
        result, lacks = measure_memory(profile), "memory samples and tensors"
        result = result if any((result.peaks, result.on_chip, result.tensors, result.spills)) else None
    else:
        result, lacks = measure_communication(profile), "collectives"
        result = result if result.kinds else None
    if not result:
        raise NeuronToolsError(f"{profile.path} lacks the data for this analysis: it has no {lacks}.")
    return result
