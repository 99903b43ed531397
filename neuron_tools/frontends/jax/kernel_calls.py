"""Kernel calls on JAX arrays: under `jit` and outside, each is one primitive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from neuron_tools.frontends.jax.kernel_primitive import bind, forms_of
from neuron_tools.nki.call import CALLS, KernelCall
from neuron_tools.nki.kernel import Kernel


def execute(kernel: Kernel, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """What a kernel returns for JAX arrays; NotImplemented where it gets none.

    Arrays do not change in JAX: what a kernel writes into an argument is lost unless it returns it.
    """
    call, arrays = KernelCall.of(kernel, arguments, keywords, _is_array)
    if not arrays:
        return NotImplemented
    form = call.form(forms_of(arrays))
    made = bind(kernel.name, arrays, CALLS.number(call))
    return form.returned(made[: len(form.results)])


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array)
