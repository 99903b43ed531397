"""What can go wrong while the device is built or loaded, each with a sentence for the user."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError


class DeviceBuildError(NeuronToolsError):
    """The C++ core of the `neuron` device could not be built or loaded."""


class NoCompilerError(DeviceBuildError):
    """There is no C++ compiler to build the device with."""


class CacheFolderError(DeviceBuildError):
    """The folder that keeps the built device cannot be written."""


class GraphCaptureError(NeuronToolsError, RuntimeError):
    """A graph of device work cannot be captured or replayed so; a RuntimeError, as PyTorch's own are."""
