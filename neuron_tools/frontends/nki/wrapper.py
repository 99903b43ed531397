"""`wrap_nki`: a function as a kernel to call on tensors."""

from __future__ import annotations

from typing import Any

from neuron_tools.nki.kernel import Kernel, jit


class KernelWrapper:
    """`wrap_nki(kernel)[2](x)`; an object of a class of its own, so that Dynamo can be taught about it."""

    def __call__(self, kernel: Any) -> Kernel:
        """The kernel; a function is made one."""
        wrapped: Kernel = kernel if isinstance(kernel, Kernel) else jit(kernel)
        return wrapped


wrap_nki = KernelWrapper()
