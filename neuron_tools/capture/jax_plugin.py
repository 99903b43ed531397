"""JAX's plug-in point (entry point group `jax_plugins`): starts recording in a captured process.

JAX calls `initialize` once, before it uses a device for the first time.
"""

from __future__ import annotations

import os

PLATFORM = "neuron"


def initialize() -> None:
    """Make the platform `neuron` known and start recording; nothing in a process that is not captured."""
    from neuron_tools.capture.autostart import start_jax
    from neuron_tools.capture.options import VARIABLE

    if VARIABLE in os.environ:
        _register_platform()
        start_jax()


def _register_platform() -> None:
    """Let `jax.devices("neuron")` be devices that compute on the host, unless AWS's own plug-in is there."""
    from jax._src import xla_bridge

    if PLATFORM not in xla_bridge._backend_factories:
        # Below the CPU's priority 0: a program that names no platform keeps the one it would have had.
        xla_bridge.register_backend_factory(PLATFORM, xla_bridge.make_cpu_client, priority=-100)
