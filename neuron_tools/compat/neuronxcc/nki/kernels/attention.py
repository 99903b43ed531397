"""`neuronxcc.nki.kernels.attention`: the options of kernels that are not there."""

from neuron_tools.compat.absent import Absent

__all__ = ["FlashConfig"]
FlashConfig = Absent(
    "neuronxcc.nki.kernels.attention.FlashConfig",
    "AWS's flash attention kernels are closed; switch flash attention off, or bring a kernel of your own.",
)
