"""`nki.benchmark`, `nki.profile` and `nki.baremetal` in their old form: latencies in microseconds.

What they write is what AWS's tools take: an artifact that `neuron-profile capture -n` runs, and a session
file that `neuron-profile view -n ... -s ...` shows.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neuron_tools.frontends.nki.kept_kernels import keep
from neuron_tools.frozen import frozen
from neuron_tools.neff import Neff, write_neff
from neuron_tools.nki.kernel import Kernel, jit
from neuron_tools.nki.timing import KernelTiming, time_kernel

_REPORTS = "json_reports"
"""Folder of the reports of sessions, in a profile's working directory."""


@frozen
class Latency:
    """Latencies of the timed iterations.

    The simulated device takes the same time in every iteration, so all percentiles are one number: the
    kernel's own time and what launching it adds to a measurement on the host.

    Attributes:
        microseconds: Latency of one iteration.
    """

    microseconds: float

    def get_latency_percentile(self, percentile: float) -> float:
        """The latency that `percentile` percent of the iterations do not exceed, in microseconds.

        Raises:
            ValueError: `percentile` is not between 0 and 100.
        """
        if not 0 <= percentile <= 100:
            raise ValueError(f"a percentile lies between 0 and 100, got {percentile}")
        return self.microseconds


@frozen
class BenchmarkResult:
    """What `kernel.benchmark_result` holds after a call.

    Attributes:
        nc_latency: Latency on the NeuronCore.
        timing: The simulated times themselves.
    """

    nc_latency: Latency
    timing: KernelTiming


@frozen
class Artifacts:
    """Files that a call writes.

    Attributes:
        program: The compiled artifact.
        traces: A session for each execution that is profiled.
        reports: Folder for a report of each session.
    """

    program: Path | None = None
    traces: tuple[Path, ...] = ()
    reports: Path | None = None

    @classmethod
    def named(cls, program: str | None, trace: str | None) -> Artifacts:
        """Those of one execution."""
        return cls(Path(program) if program else None, (Path(trace),) if trace else ())

    def write(self, timing: KernelTiming, attachments: Callable[[], Mapping[str, bytes]]) -> None:
        """Write them; the folders of sessions and reports are made.

        Args:
            timing: Of the call.
            attachments: What is attached to the artifact, made where one is written.

        Raises:
            NeffError: The artifact cannot be written.
            OSError: Another file cannot be written.
        """
        if self.program:
            self.program.parent.mkdir(parents=True, exist_ok=True)
            write_neff(Neff(timing.slowest_program, attachments=attachments()), self.program)
        text = json.dumps(timing.summary(), indent=1) + "\n"
        reports = [self.reports / f"{trace.stem}.json" for trace in self.traces] if self.reports else []
        for file in (*self.traces, *reports):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


class TimedKernel(Kernel):
    """A kernel that is timed when it is called; `benchmark_result` holds the times afterwards."""

    benchmark_result: BenchmarkResult | None = None
    artifacts = Artifacts()

    def __getitem__(self, grid: Any) -> TimedKernel:
        made = TimedKernel(self.func, grid=tuple(grid) if isinstance(grid, (tuple, list)) else (grid,),
                           older_dialect=self.older_dialect, mode=self.mode, core=self.core)  # fmt: skip
        made.artifacts, made._owner = self.artifacts, self
        return made

    _owner: TimedKernel | None = None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the kernel once for its values and its times."""
        timing = time_kernel(self, arguments, keywords)
        latency = timing.duration_ns / 1000.0 + timing.launch_overhead_ns / 1000.0
        result = BenchmarkResult(Latency(latency), timing)
        self.benchmark_result = result
        if self._owner is not None:
            self._owner.benchmark_result = result
        self.artifacts.write(timing, lambda: keep(self, arguments, keywords, timing.outputs))
        return timing.outputs


def benchmark(
    kernel: Callable[..., Any] | None = None,
    *,
    warmup: int = 10,
    iters: int = 100,
    save_neff_name: str | None = None,
    save_trace_name: str | None = None,
    **_options: Any,
) -> Any:
    """Decorate a kernel so that calling it times it: `kernel.benchmark_result.nc_latency`.

    Args:
        kernel: The kernel or function.
        warmup: Iterations before timing; the simulated device needs none.
        iters: Timed iterations; they take the same time.
        save_neff_name: File for the compiled artifact.
        save_trace_name: File for a summary of the simulated times.
    """
    if kernel is None:
        return functools.partial(benchmark, warmup=warmup, iters=iters, save_neff_name=save_neff_name,
                                 save_trace_name=save_trace_name)  # fmt: skip
    return _timed(kernel, Artifacts.named(save_neff_name, save_trace_name))


def _timed(kernel: Callable[..., Any], artifacts: Artifacts) -> TimedKernel:
    """A kernel that is timed and writes files."""
    base: Kernel = kernel if isinstance(kernel, Kernel) else jit(kernel, older_dialect=True)
    timed = TimedKernel(
        base.func, grid=base.grid, older_dialect=base.older_dialect, mode=base.mode, core=base.core
    )
    timed.artifacts = artifacts
    return timed


def profile(
    func: Callable[..., Any] | None = None,
    *,
    working_directory: str | None = None,
    save_neff_name: str = "file.neff",
    save_trace_name: str = "profile.ntff",
    num_execs: int = 1,
    profile_nth: int = 1,
    **options: Any,
) -> Any:
    """Decorate a kernel so that calling it times it and writes its Program, sessions and reports.

    Args:
        func: The kernel or function.
        working_directory: Folder of the files; made when the kernel is called.
        save_neff_name: File for the compiled artifact.
        save_trace_name: File for a session; those of executions after the first end in `_exec_N`.
        num_execs: Executions, `profile_nth` at the least; all take the same time here.
        profile_nth: Every so many executions one has a session, and a report in the folder's `json_reports`.
        options: Accepted for compatibility.

    Raises:
        ValueError: A number is below 1.
    """
    if func is None:
        return functools.partial(
            profile, working_directory=working_directory, save_neff_name=save_neff_name,
            save_trace_name=save_trace_name, num_execs=num_execs, profile_nth=profile_nth, **options,
        )  # fmt: skip
    if num_execs < 1 or profile_nth < 1:
        raise ValueError(f"num_execs={num_execs} and profile_nth={profile_nth} must both be at least 1.")
    folder = Path(working_directory) if working_directory else Path()
    profiled = range(profile_nth, max(num_execs, profile_nth) + 1, profile_nth)
    reports = folder / _REPORTS if working_directory else None
    traces = tuple(folder / _session_name(save_trace_name, execution) for execution in profiled)
    return _timed(func, Artifacts(folder / save_neff_name, traces, reports))


def _session_name(name: str, execution: int) -> str:
    """A session's file as `neuron-profile capture --profile-nth-exec` names it."""
    path = Path(name)
    return name if execution == 1 else str(path.with_name(f"{path.stem}_exec_{execution}{path.suffix}"))


def baremetal(
    kernel: Callable[..., Any] | None = None,
    *,
    save_neff_name: str | None = None,
    save_trace_name: str | None = None,
    **_options: Any,
) -> Any:
    """Decorate a kernel so that it takes NumPy arrays and runs without a framework."""
    if kernel is None:
        return functools.partial(baremetal, save_neff_name=save_neff_name, save_trace_name=save_trace_name)
    if save_neff_name or save_trace_name:
        return benchmark(kernel, save_neff_name=save_neff_name, save_trace_name=save_trace_name)
    return kernel if isinstance(kernel, Kernel) else jit(kernel, older_dialect=True)
