"""`nki.benchmark`, `nki.profile` and `nki.baremetal` in their old form: latencies in microseconds.

What they write is what AWS's tools take: an artifact that `neuron-profile capture -n` runs, and a session
file that `neuron-profile view -n ... -s ...` shows.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuron_tools.neff import Neff, write_neff
from neuron_tools.nki.kernel import Kernel, jit
from neuron_tools.nki.timing import KernelTiming, time_kernel


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """What `kernel.benchmark_result` holds after a call.

    Attributes:
        nc_latency: Latency on the NeuronCore.
        timing: The simulated times themselves.
    """

    nc_latency: Latency
    timing: KernelTiming


class TimedKernel(Kernel):
    """A kernel that is timed when it is called; `benchmark_result` holds the times afterwards."""

    benchmark_result: BenchmarkResult | None = None
    save_to: tuple[str | None, str | None] = (None, None)

    def __getitem__(self, grid: Any) -> TimedKernel:
        made = TimedKernel(self.func, grid=tuple(grid) if isinstance(grid, (tuple, list)) else (grid,),
                           older_dialect=self.older_dialect, mode=self.mode, core=self.core)  # fmt: skip
        made.save_to, made._owner = self.save_to, self
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
        self._write_files(timing)
        return timing.outputs

    def _write_files(self, timing: KernelTiming) -> None:
        program, trace = self.save_to
        if program:
            write_neff(Neff(timing.slowest_program), Path(program))
        if trace:
            Path(trace).write_text(json.dumps(timing.summary(), indent=1) + "\n")


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
    base: Kernel = kernel if isinstance(kernel, Kernel) else jit(kernel, older_dialect=True)
    timed = TimedKernel(
        base.func, grid=base.grid, older_dialect=base.older_dialect, mode=base.mode, core=base.core
    )
    timed.save_to = (save_neff_name, save_trace_name)
    return timed


def profile(
    func: Callable[..., Any] | None = None,
    *,
    working_directory: str | None = None,
    save_neff_name: str = "file.neff",
    save_trace_name: str = "profile.ntff",
    **options: Any,
) -> Any:
    """Decorate a kernel so that calling it times it and writes its Program and a summary of its times."""
    if func is None:
        return functools.partial(profile, working_directory=working_directory, save_neff_name=save_neff_name,
                                 save_trace_name=save_trace_name, **options)  # fmt: skip
    folder = Path(working_directory) if working_directory else Path()
    return benchmark(func, save_neff_name=str(folder / save_neff_name),
                     save_trace_name=str(folder / save_trace_name))  # fmt: skip


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
