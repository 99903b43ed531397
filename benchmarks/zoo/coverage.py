"""What the compiler makes of a model: how much is lowered natively, how long it takes, whose time it is."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch

import neuron_tools
from benchmarks.zoo.case import Case
from benchmarks.zoo.training import largest_difference, parameters_from, step_on_cpu, step_on_device
from neuron_profile.analysis.hotspots import Hotspots, find_hotspots
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_OPERATIONS = "SELECT count(*) AS count FROM FrameworkInstruction WHERE pcore_idx = 0"
"""Where a logical NeuronCore is two physical ones, both have a row of each operation that they share."""
_CUSTOM_CALLS = """
SELECT framework_name AS name, count(DISTINCT raw_framework_id) AS count
FROM HloInstruction WHERE hlo_opcode = 'custom_call' AND pcore_idx = 0 GROUP BY ALL
"""
_EXECUTABLES = """
SELECT count(*) AS count, coalesce(sum(compile_time_ns), 0) AS compile_ns,
    coalesce(sum(instruction_count * execution_count), 0) AS instructions
FROM Executable
"""
_REFUSED = "SELECT count(*) AS count FROM Warning WHERE message LIKE '%could not be compiled%'"


@frozen
class Coverage:
    """One training step of one model.

    Attributes:
        mode: "eager", "fused" (eager operations that wait run together) or "compiled".
        operations: Framework operations that took device time, by count of executions.
        custom_calls: Those without a native lowering, by operator name.
        refused: Operators and graphs that could not be compiled at all.
        executables: Distinct compiled computations.
        compile_ms: Host time to lower, compile and simulate them.
        instructions: Instructions executed.
        device_us: Simulated device time.
        mfu: Model FLOPs over peak FLOPs in the device time, 0 to 1.
        line_share, module_share: Part of the device time that reaches a source line, a module path.
        line_sum_error: How far the sum over lines and the rest is from the total, relative.
        difference: Largest difference of outputs and gradients from the CPU's, relative.
        parameter_difference: Of the parameters after AdamW, likewise.
    """

    model: str
    mode: str
    operations: int
    custom_calls: Mapping[str, int]
    refused: int
    executables: int
    compile_ms: float
    instructions: int
    device_us: float
    mfu: float
    line_share: float
    module_share: float
    line_sum_error: float
    difference: float
    parameter_difference: float

    @property
    def native_share(self) -> float:
        """Part of the operations that is lowered natively, 0 to 1."""
        return 1 - sum(self.custom_calls.values()) / max(self.operations, 1)


def measure(case: Case, *, compiled: bool = False, fused: bool = False) -> Coverage:
    """Capture one training step of a model and read its profile.

    Args:
        case: The model.
        compiled: Compile it as a whole.
        fused: Let eager operations wait and run together, at a fixed host time per dispatch.
    """
    expected = step_on_cpu(case)
    torch._dynamo.reset()
    with tempfile.TemporaryDirectory() as folder:
        path, clock = Path(folder) / "run.nprof", "fixed" if fused else "measured"
        with neuron_tools.profile(path, host_clock=clock, eager_fusion="auto" if fused else "off") as run:
            found = step_on_device(case, compiled=compiled)
        with run.open() as opened:
            mode = "compiled" if compiled else "fused" if fused else "eager"
            return _read(
                opened,
                case.name,
                mode,
                largest_difference(expected.values, found.values),
                largest_difference(parameters_from(case, found.values), found.parameters),
            )


def half_difference(case: Case, *, compiled: bool) -> float:
    """The largest difference of a step in bfloat16 from the CPU's, relative to each largest value."""
    expected = step_on_cpu(case, torch.bfloat16)
    torch._dynamo.reset()
    found = step_on_device(case, compiled=compiled, dtype=torch.bfloat16)
    return max(
        largest_difference(expected.values, found.values),
        largest_difference(parameters_from(case, found.values, torch.bfloat16), found.parameters),
    )


def _read(
    profile: Profile, model: str, mode: str, difference: float, parameter_difference: float
) -> Coverage:
    spots = find_hotspots(profile)
    executables = profile.query(_EXECUTABLES).to_pylist()[0]
    calls = Counter({row["name"]: row["count"] for row in profile.query(_CUSTOM_CALLS).to_pylist()})
    by_line = sum(line.cost.device_ns for line in spots.lines)
    return Coverage(
        model=model,
        mode=mode,
        operations=_count(profile, _OPERATIONS),
        custom_calls=dict(calls),
        refused=_count(profile, _REFUSED),
        executables=int(executables["count"]),
        compile_ms=float(executables["compile_ns"]) / 1e6,
        instructions=int(executables["instructions"]),
        device_us=spots.device_ns / 1e3,
        mfu=_mfu(profile, spots.device_ns),
        line_share=by_line / spots.device_ns,
        module_share=_in_modules_ns(spots) / spots.device_ns,
        line_sum_error=abs(by_line + spots.without_line_ns - spots.device_ns) / spots.device_ns,
        difference=difference,
        parameter_difference=parameter_difference,
    )


def _in_modules_ns(spots: Hotspots) -> float:
    """Device time in modules; work outside of all has the path of a function ("/train_step()")."""
    children = spots.modules.children
    return sum(child.cost.device_ns for child in children if not child.name.endswith(("()", ".py")))


def _mfu(profile: Profile, device_ns: float) -> float:
    """The summary's MFU is of the whole capture: its time on the host is left out here."""
    summary = profile.summary()
    return float(summary["mfu_estimated_percent"] * summary["total_time"] / (device_ns * 1e-9))


def _count(profile: Profile, query: str) -> int:
    return int(profile.query(query).to_pylist()[0]["count"])
