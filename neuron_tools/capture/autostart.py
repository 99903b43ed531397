"""Starts recording in a process of a captured command, when it imports torch."""

from __future__ import annotations

import os
import sys

_started = False


def autostart() -> None:
    """Entry point of torch's back-end autoload: does nothing unless this process is being captured.

    It must never break `import torch`: a failure becomes one line on standard error.
    """
    global _started
    from neuron_tools.capture.options import VARIABLE

    if _started or VARIABLE not in os.environ:
        return
    _started = True
    try:
        _start()
    except Exception as error:
        print(f"neuron-profile: this process is not recorded: {error}", file=sys.stderr)


def _start() -> None:
    import atexit

    from neuron_tools.capture.options import from_environment
    from neuron_tools.capture.runtimes.torch_runtime import TorchRuntime
    from neuron_tools.capture.session import CaptureSession
    from neuron_tools.device.autoload import autoload

    options = from_environment(os.environ)
    if options is None:
        return
    autoload()
    session = CaptureSession(options, TorchRuntime())
    session.start()
    atexit.register(session.stop)
