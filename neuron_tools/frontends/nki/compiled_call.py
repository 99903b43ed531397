"""`nki.framework.compiled.CompileKernel`: a function that is compiled to a file when it is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from neuron_tools.frontends.nki.kept_kernels import keep
from neuron_tools.neff import Neff, write_neff
from neuron_tools.nki.kernel import Kernel, jit
from neuron_tools.nki.timing import time_kernel

ARTIFACT = "kernel.neff"


class CompileKernel:
    """A kernel whose calls compute its results and write its compiled artifact.

    Args:
        func: The kernel, or its function.
        artifacts_dir: Folder for `kernel.neff`, which `neuron-profile capture -n` runs.
        grid: Launch grid; () without.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        artifacts_dir: str | Path = ".",
        grid: tuple[Any, ...] = (),
        **_options: Any,
    ) -> None:
        kernel: Kernel = func if isinstance(func, Kernel) else jit(func)
        self.kernel = kernel[grid] if grid else kernel
        self.artifacts_dir = Path(artifacts_dir)

    def __getitem__(self, grid: Any) -> CompileKernel:
        axes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        return CompileKernel(self.kernel, self.artifacts_dir, axes)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The kernel's results; of two cores the slower one's Program is written.

        Raises:
            NkiError: The kernel breaks a rule.
            NeffError: The artifact cannot be written.
        """
        timing = time_kernel(self.kernel, arguments, keywords)
        self.artifacts_dir.mkdir(parents=True, exist_ok=True)
        attachments = keep(self.kernel, arguments, keywords, timing.outputs)
        write_neff(Neff(timing.slowest_program, attachments=attachments), self.artifacts_dir / ARTIFACT)
        return timing.outputs
