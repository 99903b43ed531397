"""The analyses by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.catalogue import ANALYSES
from neuron_profile.analysis.communication import measure_communication
from neuron_profile.analysis.critical_path import find_critical_path
from neuron_profile.analysis.errors import LacksDataError
from neuron_profile.analysis.expected import find_expected
from neuron_profile.analysis.host_activity import find_host_idle
from neuron_profile.analysis.idle_reasons import idle_reasons
from neuron_profile.analysis.job_step import measure_job_step
from neuron_profile.analysis.memory import measure_memory
from neuron_profile.analysis.recorded_path import find_recorded_path
from neuron_profile.analysis.roofline import make_roofline
from neuron_profile.analysis.serving import measure_serving
from neuron_profile.analysis.traces.breakdown import break_down
from neuron_profile.analysis.traces.collectives import measure_trace_communication
from neuron_profile.analysis.traces.counters import find_counters
from neuron_profile.analysis.traces.critical_path import find_trace_path
from neuron_profile.analysis.traces.graphs import find_graphs
from neuron_profile.analysis.traces.idle import find_stream_times
from neuron_profile.analysis.traces.input import find_input
from neuron_profile.analysis.traces.launches import find_stream_queues
from neuron_profile.analysis.traces.roofline import make_trace_roofline
from neuron_profile.analysis.traces.triton import find_triton_kernels
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

Analysis = Callable[[Profile, str], Any]


@frozen
class ProfileAnalysis:
    """An analysis, the same of an imported trace, and what a profile lacks that has neither.

    Attributes:
        of_capture: Of a profile with Neuron's own tables; gives something false where they are empty.
        of_trace: Of a trace of another tool; None where that tells nothing.
        lacks: What a profile without a result has none of, as the sentence ends.
    """

    of_capture: Analysis
    of_trace: Analysis | None
    lacks: str


def run_analysis(profile: Profile, name: str, level: str = "operation") -> Any:
    """The result of one analysis: a dataclass, or a tuple of them.

    Args:
        name: One of `ANALYSES`.
        level: What a point of the roofline is.

    Raises:
        LacksDataError: The profile lacks the data it needs; the sentence says which.
    """
    entry: ProfileAnalysis = ANALYSES.load(name)
    result = entry.of_capture(profile, level)
    if not result and entry.of_trace is not None and profile.tables().get("TraceSpan"):
        result = entry.of_trace(profile, level)
    if not result:
        raise LacksDataError(f"{profile.path} lacks the data for this analysis: it has no {entry.lacks}.")
    return result


def _roofline(profile: Profile, level: str) -> Any:
    roofline = make_roofline(profile, level)
    return roofline if roofline.points else None


def _critical_path(profile: Profile, level: str) -> Any:
    return find_critical_path(Context(profile)) or find_recorded_path(profile)


def _memory(profile: Profile, level: str) -> Any:
    memory = measure_memory(profile)
    return memory if any((memory.peaks, memory.on_chip, memory.tensors, memory.spills)) else None


def _communication(profile: Profile, level: str) -> Any:
    communication = measure_communication(profile)
    return communication if communication.kinds else None


def _trace_communication(profile: Profile, level: str) -> Any:
    communication = measure_trace_communication(profile)
    return communication if communication.kinds else None


def _kernels(profile: Profile, level: str) -> Any:
    whole = break_down(profile)
    return whole if whole.devices else None


def _of_traces(find: Callable[[Profile], Any], lacks: str) -> ProfileAnalysis:
    return ProfileAnalysis(lambda profile, level: None, lambda profile, level: find(profile), lacks)


IDLE = ProfileAnalysis(
    lambda profile, level: idle_reasons(profile),
    lambda profile, level: find_stream_times(profile),
    "instructions and no spans of a device",
)
HOST = ProfileAnalysis(
    lambda profile, level: find_host_idle(profile), None, "samples of the host (--host-clock measured)"
)
KERNELS = ProfileAnalysis(
    lambda profile, level: None, _kernels, "spans of a device from another tool's trace"
)
QUEUE = _of_traces(find_stream_queues, "launches of a device's work from another tool's trace")
GRAPHS = _of_traces(
    find_graphs, "launches of recorded graphs (CUDA graphs, HIP graphs) from another tool's trace"
)
TRITON = _of_traces(find_triton_kernels, "operators that name a Triton kernel's source")
COUNTERS = _of_traces(find_counters, "counters of CUPTI's range profiler")
INPUT = _of_traces(find_input, "waits for a data loader and no infeed in another tool's trace")
ROOFLINE = ProfileAnalysis(
    _roofline, make_trace_roofline, "HLO operations, and no shapes of operators on a device with known peaks"
)
CRITICAL_PATH = ProfileAnalysis(
    _critical_path, lambda profile, level: find_trace_path(profile), "instructions and no spans"
)
MEMORY = ProfileAnalysis(_memory, None, "memory samples and tensors")
STEP = ProfileAnalysis(
    lambda profile, level: measure_job_step(profile), None, "execution on a simulated device"
)
REQUESTS = ProfileAnalysis(
    lambda profile, level: measure_serving(profile),
    None,
    'ranges "request ID" (torch.profiler.record_function)',
)
EXPECTED = ProfileAnalysis(
    lambda profile, level: find_expected(profile), None, "times that were simulated for a chip that exists"
)
COMMUNICATION = ProfileAnalysis(_communication, _trace_communication, "collectives")
