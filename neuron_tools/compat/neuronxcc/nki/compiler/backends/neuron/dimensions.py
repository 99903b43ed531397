"""Dimensions of a launch grid: `kernel[VNC(2)](...)`."""

from neuron_tools.nki.language.launch_position import CoreCount, SpreadDimension

__nki_names__ = True
NC = VNC = CoreCount
SPMDDim = SpreadDimension
__all__ = ["NC", "VNC", "SPMDDim"]
