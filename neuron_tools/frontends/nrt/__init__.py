"""AWS's runtime library, `libnrt`, for programs that load it with ctypes: artifacts loaded, fed, executed."""

from neuron_tools.frontends.nrt.library import RuntimeLibrary

__all__ = ["RuntimeLibrary"]
