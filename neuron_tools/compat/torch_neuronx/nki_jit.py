"""`torch_neuronx.nki_jit`: the older decorator for kernels that PyTorch calls."""

from typing import Any

from neuron_tools.compat.absent import Absent
from neuron_tools.nki.kernel import jit

__all__ = ["nki_jit"]


def nki_jit(func: Any = None, **options: Any) -> Any:
    """Decorate a function of the older dialect as a kernel: `@nki_jit`, `nki_jit()(kernel)`.

    Kernels of this spelling write into tensors that they are given; calling one changes these.
    """
    if func is None:
        return lambda function: nki_jit(function, **options)
    if isinstance(func, Absent):  # models decorate AWS's closed kernels when they are imported
        return func
    return jit(func, mode="torchxla", older_dialect=True)
