"""`torch_xla.experimental.custom_kernel`: kernels for TPUs, one of which diffusers imports."""

from neuron_tools.compat.absent import names_of

__getattr__ = names_of(
    __name__,
    "its kernels are written in Pallas for TPUs; call "
    "torch.nn.functional.scaled_dot_product_attention, or an NKI kernel.",
)
