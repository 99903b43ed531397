"""The generation that a kernel is built for."""

from __future__ import annotations

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.isa.enums import nc_version
from neuron_tools.nki.target import default_core

_VERSIONS = {2: nc_version.gen2, 3: nc_version.gen3, 4: nc_version.gen4}


def get_nc_version() -> nc_version:
    """The NeuronCore generation of the running kernel, or of the default target."""
    trace = tracing.running()
    core = trace.core if trace is not None else default_core()
    return _VERSIONS.get(core.generation, nc_version.gen2)


def get_nc_sub_version() -> int:
    """Revision within the generation; always 0."""
    return 0
