"""Kernels on tensors of the `neuron` device: one execution each, in the log and on the clock of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from neuron_tools.frontends import executables
from neuron_tools.frontends.executables import ExecutableProvider
from neuron_tools.frontends.nki.ready import program_key, programs_of
from neuron_tools.nki.call import CallForm, KernelCall

Executable = tuple[int, int]
"""Number and duration in ns."""
Result = TypeVar("Result")

_KNOWN: WeakKeyDictionary[Any, dict[int, tuple[CallForm, list[Executable]]]] = WeakKeyDictionary()


def recording_on(tensors: Sequence[Any]) -> ExecutableProvider | None:
    """Who times a kernel on these tensors.

    None where no capture runs, where no tensor is on the device, and inside a compiled graph, whose Program
    has the kernel's.
    """
    provider = executables.current()
    if provider is None or not any(tensor.device.type == "neuron" for tensor in tensors):
        return None
    from neuron_tools.device import native

    return provider if native.is_timing() else None


def run_timed(
    compute: Callable[[], Result], call: KernelCall, form: CallForm, tensors: Sequence[Any]
) -> Result:
    """Compute a kernel's values outside virtual time, then place its execution on the device."""
    provider = recording_on(tensors)
    if provider is None:
        return compute()
    from neuron_tools.device import native

    with native.paused_clock():
        result = compute()
        timed = _executables(provider, call, form)
    device = next(tensor.device for tensor in tensors if tensor.device.type == "neuron")
    for rank, executable in enumerate(timed):
        _place((device.index or 0) + rank, executable, f"nki::{call.kernel.name}")
    return result


def _executables(provider: ExecutableProvider, call: KernelCall, form: CallForm) -> list[Executable]:
    known = _KNOWN.setdefault(provider, {})
    if id(form) not in known:
        programs = programs_of(call, form)
        key = program_key(programs)
        timed = list(provider.executables_of(programs, ("nki", key), eager=True))
        if form.is_data_dependent:
            return timed
        known[id(form)] = form, timed
    return known[id(form)][1]


def _place(index: int, executable: Executable, name: str) -> None:
    """Put an execution on a core; on the last one where the process has fewer."""
    from neuron_tools.device import native

    core = native.core()
    before = core.exchange_device(min(index, core.device_count() - 1))
    try:
        native.run_graph(*executable, native.intern_name(name))
    finally:
        core.exchange_device(before)
