"""Triton kernels by their source: the file that Inductor wrote or the user's own, tile sizes, warps.

PyTorch records them with the operator that launches the kernel (`kernel_file`, `kernel_kwargs`). A kernel of
the same name that a graph replays belongs to the same source, if only one has that name.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from neuron_profile.analysis.traces.attribution import attribute
from neuron_profile.analysis.traces.device_spans import Kind
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_KEYS = ("kernel_file", "kernel_backend", "kernel_kwargs", "num_warps", "num_stages", "grid")
_TOLD = ", ".join(f"json_extract_string(arguments_json, '$.\"{key}\"') AS {key}" for key in _KEYS)
_OPERATORS = f"""
SELECT id, name, {_TOLD} FROM TraceSpan
WHERE category = 'cpu_op' AND contains(arguments_json, '"kernel_file"') ORDER BY id
"""


@frozen
class TritonKernel:
    """All runs of one kernel of one source.

    Attributes:
        file: Its source.
        kwargs: Tile sizes and other constants, "XBLOCK=1024".
        warps, stages, grid: As recorded; "" where they were not.
        calls: Runs on a device.
        replayed: How many of them a graph launched, or a call without the source.
        device_ns: Time of them all.
    """

    kernel: str
    file: str
    backend: str
    kwargs: str
    warps: str
    stages: str
    grid: str
    calls: int
    replayed: int
    device_ns: int

    @property
    def mean_ns(self) -> float:
        """Mean duration of a run; 0 of a kernel that was only launched."""
        return self.device_ns / self.calls if self.calls else 0.0


_Source = tuple[str, ...]
"""The kernel's name and the texts of `_KEYS`."""


@dataclass
class _Runs:
    """What a source's kernel did on the devices."""

    calls: int = 0
    replayed: int = 0
    device_ns: int = 0
    operators: list[int] = field(default_factory=list)


def find_triton_kernels(profile: Profile) -> tuple[TritonKernel, ...]:
    """Kernels by falling device time; () where no operator told a kernel's source."""
    sources: defaultdict[_Source, _Runs] = defaultdict(_Runs)
    for row in profile.query(_OPERATORS).to_pylist():
        source = (row["name"], *(row[key] or "" for key in _KEYS))
        sources[source].operators.append(row["id"])
    if not sources:
        return ()
    _add_runs(profile, sources)
    found = [_kernel(source, runs) for source, runs in sources.items()]
    return tuple(sorted(found, key=lambda kernel: (-kernel.device_ns, kernel.kernel, kernel.file)))


def _add_runs(profile: Profile, sources: dict[_Source, _Runs]) -> None:
    """Count each kernel to the operator that launched it, else to the only source of its name."""
    of_operator = {number: runs for runs in sources.values() for number in runs.operators}
    of_name: defaultdict[str, list[_Runs]] = defaultdict(list)
    for source, runs in sources.items():
        of_name[source[0]].append(runs)
    work = attribute(profile)
    rows = zip(work.kernels, work.kind.tolist(), work.operator_id.tolist(), work.duration_ns.tolist())
    for name, kind, operator, duration_ns in rows:
        launched = of_operator.get(operator) if kind == int(Kind.COMPUTE) else None
        named = of_name.get(name, ())
        found = launched or (named[0] if len(named) == 1 else None)
        if found is not None:
            found.calls += 1
            found.replayed += launched is None
            found.device_ns += duration_ns


def _kernel(source: _Source, runs: _Runs) -> TritonKernel:
    name, file, backend, kwargs, warps, stages, grid = source
    return TritonKernel(
        name, file, backend, kwargs, warps, stages, grid, runs.calls, runs.replayed, runs.device_ns
    )
