"""Starts recording in a process of a captured command, when it imports torch or JAX, or runs a kernel."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuron_tools.capture.runtimes import Runtime

_started: set[str] = set()


def autostart() -> None:
    """Entry point of torch's back-end autoload: does nothing unless this process is captured or timed."""

    def torch_runtime() -> Runtime:
        from neuron_tools.capture.runtimes.torch_runtime import TorchRuntime
        from neuron_tools.device.autoload import autoload

        autoload()
        return TorchRuntime()

    _start_once("torch", torch_runtime)
    _start_timed_once()


def start_jax() -> None:
    """The same for JAX, whose plug-in calls this."""

    def jax_runtime() -> Runtime:
        from neuron_tools.capture.runtimes.jax_runtime import JaxRuntime

        return JaxRuntime()

    _start_once("jax", jax_runtime)


def start_nki() -> None:
    """The same for NKI kernels, whose first call loads this."""

    def nki_runtime() -> Runtime:
        from neuron_tools.capture.runtimes.nki_runtime import NkiRuntime

        return NkiRuntime()

    _start_once("nki", nki_runtime)


def _start_once(name: str, make_runtime: Callable[[], Runtime]) -> None:
    """Record the rest of this process with a runtime.

    It must never break the user's import: a failure becomes one line on standard error.
    """
    from neuron_tools.capture.options import VARIABLE

    if name in _started or VARIABLE not in os.environ:
        return
    _started.add(name)
    try:
        _start(make_runtime)
    except Exception as error:
        print(f"neuron-profile: this process is not recorded: {error}", file=sys.stderr)


def _start_timed_once() -> None:
    """Keep simulated time where `python -m neuron_tools` started this process and nothing is recorded."""
    target = os.environ.get("NEURON_TOOLS_TIMED")
    if "timed" in _started or "torch" in _started or not target:
        return
    _started.add("timed")
    try:
        from neuron_tools.capture.timed_run import start_timed_torch
        from neuron_tools.device.autoload import autoload

        autoload()
        start_timed_torch(target)
    except Exception as error:
        print(f"neuron-tools: the device keeps no time: {error}", file=sys.stderr)


def _start(make_runtime: Callable[[], Runtime]) -> None:
    import atexit

    from neuron_tools.capture.options import from_environment
    from neuron_tools.capture.session import CaptureSession

    options = from_environment(os.environ)
    if options is None:
        return
    session = CaptureSession(options, make_runtime())
    session.start()
    atexit.register(session.stop)
