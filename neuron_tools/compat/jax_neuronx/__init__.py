"""`jax_neuronx`: the older way to call kernels from JAX."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from neuron_tools.nki.kernel import Kernel, jit

__all__ = ["nki_call"]


def nki_call(func: Callable[..., Any], *args: Any, out_shape: Any, grid: Any = None, **options: Any) -> Any:
    """Call a kernel that writes into tensors after its inputs.

    Args:
        func: Kernel or function of the older dialect, perhaps a `functools.partial` of one.
        args: Its inputs.
        out_shape: One `jax.ShapeDtypeStruct` or several: the tensors that it writes.
        grid: Its launch grid.
        options: Keyword arguments of the kernel.

    Returns:
        What it wrote: one array, or as many as `out_shape` has.
    """
    fixed = func.keywords if isinstance(func, functools.partial) else {}
    function = func.func if isinstance(func, functools.partial) else func
    kernel = function if isinstance(function, Kernel) else jit(function, older_dialect=True)
    kernel = kernel if grid is None else kernel[grid]
    shapes = out_shape if isinstance(out_shape, Sequence) else [out_shape]
    outputs = [jnp.zeros(shape.shape, shape.dtype) for shape in shapes]
    written = _writing(kernel, len(outputs))(*args, *outputs, **{**fixed, **options})
    return written if isinstance(out_shape, Sequence) else written[0]


def _writing(kernel: Kernel, outputs: int) -> Kernel:
    """The kernel returning its last array arguments."""

    @functools.wraps(kernel.func)
    def function(*arguments: Any, **keywords: Any) -> Any:
        kernel.func(*arguments, **keywords)
        return tuple(arguments[-outputs:])

    return Kernel(function, grid=kernel.grid, older_dialect=kernel.older_dialect, mode=kernel.mode)
