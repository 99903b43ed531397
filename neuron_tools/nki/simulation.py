"""`nki.simulate` and `nki.simulate_kernel`: a kernel's values on the host, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_tools.nki.execution import compute
from neuron_tools.nki.kernel import SIMULATION, Kernel, jit
from neuron_tools.nki.tracebacks import short_tracebacks


def simulate(kernel: Any) -> Callable[..., Any]:
    """A function that runs a kernel on the host and returns its results: `nki.simulate(kernel)(a, b)`.

    Args:
        kernel: A kernel, or a function to take as one; `kernel[grid]` launches on a grid.
    """
    wanted: Kernel = kernel if isinstance(kernel, Kernel) else jit(kernel)

    @short_tracebacks
    def simulated(*arguments: Any, **keywords: Any) -> Any:
        return compute(wanted, arguments, keywords).outputs

    return simulated


def cpu_simulate(kernel: Any) -> Kernel:
    """A kernel that computes values on the host only: `nki.cpu_simulate(kernel)[2](a, b)`."""
    wanted: Kernel = kernel if isinstance(kernel, Kernel) else jit(kernel)
    return HostKernel(wanted.func, grid=wanted.grid, older_dialect=wanted.older_dialect, core=wanted.core)


class HostKernel(Kernel):
    """A kernel whose calls are never captured or timed."""

    def __getitem__(self, grid: Any) -> HostKernel:
        chosen = super().__getitem__(grid)
        return HostKernel(
            self.func, grid=chosen.grid, older_dialect=self.older_dialect, mode=self.mode, core=self.core
        )

    @short_tracebacks
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Compute the kernel's results."""
        return compute(self, arguments, keywords).outputs


@short_tracebacks
def simulate_kernel(kernel: Any, *arguments: Any, **keywords: Any) -> Any:
    """Run a kernel on the host: `nki.simulate_kernel(kernel, a, b)` (older dialect)."""
    wanted: Kernel = kernel if isinstance(kernel, Kernel) else jit(kernel, older_dialect=True)
    simulated = Kernel(
        wanted.func, grid=wanted.grid, older_dialect=wanted.older_dialect, mode=SIMULATION, core=wanted.core
    )
    return compute(simulated, arguments, keywords).outputs
