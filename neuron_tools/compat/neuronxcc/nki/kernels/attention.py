"""`neuronxcc.nki.kernels.attention`: what models name of kernels that are not there."""

from neuron_tools.compat.absent import Absent

__all__ = ["FlashConfig", "attention_isa_kernel", "flash_fwd"]
_REASON = (
    "AWS's flash attention kernels are closed; switch flash attention off, or bring a kernel of your own."
)
FlashConfig = Absent("neuronxcc.nki.kernels.attention.FlashConfig", _REASON)
attention_isa_kernel = Absent("neuronxcc.nki.kernels.attention.attention_isa_kernel", _REASON)
flash_fwd = Absent("neuronxcc.nki.kernels.attention.flash_fwd", _REASON)
