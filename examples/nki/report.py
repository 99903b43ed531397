"""What the examples print: each kernel's simulated time, and what its engines were busy with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.timing import time_kernel


def compare(
    kernels: Sequence[Kernel], arguments: tuple[Any, ...], expected: np.ndarray, tolerance: float
) -> None:
    """Run each kernel, check its result, and print its time and its busiest engines."""
    for kernel in kernels:
        timing = time_kernel(kernel, arguments, {})
        error = np.abs(np.asarray(timing.outputs, np.float32) - expected).max()
        assert error <= tolerance * np.abs(expected).max(), f"{kernel.name}: off by {error}"
        busy = sorted(timing.busy_ns().items(), key=lambda item: -item[1])[:2]
        shares = ", ".join(f"{engine} {time / timing.duration_ns:4.0%}" for engine, time in busy if time)
        transfers = len(timing.kernels[0].program.dmas)
        print(f"{kernel.name:<28} {timing.duration_ns / 1000:9.1f} us   {transfers:5} transfers   {shares}")
