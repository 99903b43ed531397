"""`nki.jit`: a Python function as a kernel that can be called, launched on a grid, timed and inspected."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from neuron_tools.hardware import LNC_VARIABLE, NeuronCore
from neuron_tools.nki import execution, tracer as tracing
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.language.launch_position import SpreadDimension
from neuron_tools.nki.python_subset import check_subset
from neuron_tools.nki.run import Launch, Run, run
from neuron_tools.nki.target import default_core
from neuron_tools.nki.tracebacks import short_tracebacks
from neuron_tools.nki.tracer import NeedsCores, NeedsValues, Recording

SIMULATION = "simulation"
"""The older dialect's mode of running a kernel in AWS's simulator."""
_LARGEST_LOGICAL_CORE = 2


class Kernel:
    """A kernel.

    Calling it runs it: values are computed, and whoever listens (a capture, a framework) is told.
    `kernel[grid](...)` runs one instance per position of the grid.

    Attributes:
        func: The function that was decorated.
        grid: Extents of the launch grid; () without.
        older_dialect: Whether it came from `neuronxcc.nki`.
        mode: The older dialect's `mode=`; "auto" by default.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        grid: tuple[Any, ...] = (),
        older_dialect: bool = False,
        mode: str = "auto",
        core: NeuronCore | None = None,
    ) -> None:
        self.func = function
        self.grid = grid
        self.older_dialect = older_dialect
        self.mode = mode
        self.core = core
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.func, "__name__", "kernel"))

    def __getitem__(self, grid: Any) -> Kernel:
        axes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        return Kernel(self.func, grid=axes, older_dialect=self.older_dialect, mode=self.mode, core=self.core)

    def launch(self, *, values: bool = True, recording: Recording = Recording.ALL) -> Launch:
        """How a call runs.

        Raises:
            NkiValidationError: The present dialect's brackets hold something else than an LNC degree, or
                one that the logical NeuronCore of the environment does not have.
        """
        if not self.older_dialect:
            _check_degree(self.name, [int(_extent(axis)) for axis in self.grid])
        return Launch(
            self.func, self.name, self.core or default_core(), tuple(int(_extent(a)) for a in self.grid),
            cores=self._cores(), older_dialect=self.older_dialect, values=values, recording=recording,
            simulated=self.mode == SIMULATION,
        )  # fmt: skip

    def _cores(self) -> int:
        if len(self.grid) != 1:
            return 1
        axis = self.grid[0]
        spread = getattr(axis, "cores", getattr(axis, "count", None))
        if spread is None and self.older_dialect:
            return 1
        extent = int(_extent(axis))
        return extent if 1 < extent <= _LARGEST_LOGICAL_CORE else 1

    def run(
        self, *arguments: Any, values: bool = True, recording: Recording = Recording.ALL, **keywords: Any
    ) -> Run:
        """Run the kernel and keep its traces.

        Args:
            arguments: The kernel's arguments.
            values: Whether to compute values; where the kernel's course depends on them they are computed
                all the same.
            recording: What of the run to keep.
            keywords: The kernel's keyword arguments.
        """
        if not self.older_dialect:
            check_subset(self.func)
        launch = self.launch(values=values, recording=recording)
        while True:
            try:
                return run(launch, arguments, keywords)
            except NeedsValues:
                launch = replace(launch, values=True)
            except NeedsCores:
                launch = replace(launch, cores=_LARGEST_LOGICAL_CORE)

    @short_tracebacks
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the kernel; inside another kernel, call its function."""
        if tracing.running() is not None:
            return self.func(*arguments, **keywords)
        return execution.execute(self, arguments, keywords)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _check_degree(name: str, grid: list[int]) -> None:
    """Refuse what is no LNC degree (NKI's "Using Logical Neuron Cores", and `nki.jit`: it must match)."""
    if len(grid) > 1 or any(extent > _LARGEST_LOGICAL_CORE for extent in grid):
        raise NkiValidationError(
            f"{name}[{', '.join(map(str, grid))}] asks for {math.prod(grid)} physical cores, but a logical "
            f"NeuronCore has 1 or 2; launch {name}[2], and divide the work by nl.program_id(0) and loops"
        )
    if grid and grid[0] > 1 and os.environ.get(LNC_VARIABLE) == "1":
        raise NkiValidationError(
            f"{name}[{grid[0]}] needs a logical NeuronCore of {grid[0]} physical ones, but {LNC_VARIABLE} is "
            f"1; set it to {grid[0]}, or launch {name}[1]"
        )


def _extent(axis: Any) -> int:
    """Instances along an axis; an axis of 0, as some kernels are launched with, has one."""
    count = int(axis) if isinstance(axis, (int, SpreadDimension)) else int(getattr(axis, "count", axis))
    return max(count, 1)


def jit(
    func: Callable[..., Any] | None = None,
    *,
    mode: str = "auto",
    older_dialect: bool = False,
    platform_target: str | None = None,
    fn: Callable[..., Any] | None = None,
    **_options: Any,
) -> Any:
    """Decorate a function as a kernel: `@nki.jit` or `@nki.jit(mode=...)`.

    Args:
        func: The function.
        mode: The older dialect's choice of framework; all of them work alike here.
        older_dialect: Whether the older dialect's leniency applies.
        platform_target: Generation to run on, e.g. "trn2"; default that of the capture.
        fn: Another name of `func`.
    """
    func = func if func is not None else fn
    if func is None:
        return functools.partial(jit, mode=mode, older_dialect=older_dialect, platform_target=platform_target)
    if isinstance(func, Kernel):
        return func
    core = None
    if platform_target:
        from neuron_tools import hardware

        core = hardware.get(platform_target)
    return Kernel(func, older_dialect=older_dialect, mode=mode, core=core)
