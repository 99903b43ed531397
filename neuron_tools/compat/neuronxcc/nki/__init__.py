"""`neuronxcc.nki`: kernels whose instructions return their results."""

import functools as _functools
from typing import Any as _Any

from neuron_tools.frontends.nki.benchmark import baremetal, benchmark, profile
from neuron_tools.nki.errors import NkiError
from neuron_tools.nki.kernel import Kernel as FrameworkKernel, jit as _jit
from neuron_tools.nki.language import par_dim
from neuron_tools.nki.missing import missing_name
from neuron_tools.nki.simulation import simulate, simulate_kernel
from neuron_tools.nki.tensor import NkiTensor as tensor

from . import compiler, isa, language, typing  # isort: skip

__nki_names__ = True
__version__ = "2.21"


def jit(func: _Any = None, mode: str = "auto", **options: _Any) -> _Any:
    """Decorate a function as a kernel of the older dialect."""
    if func is None:
        return _functools.partial(jit, mode=mode, **options)
    return _jit(func, mode=mode, older_dialect=True)


def trace(func: _Any = None, **options: _Any) -> _Any:
    """Decorate a function as a kernel (old name of `jit`)."""
    return jit(func, **options)


__all__ = [
    "FrameworkKernel", "NkiError", "baremetal", "benchmark", "compiler", "isa", "jit", "language", "par_dim",
    "profile",
    "simulate", "simulate_kernel", "tensor", "trace", "typing",
]  # fmt: skip
__getattr__ = missing_name("neuronxcc.nki", "nki", globals())
