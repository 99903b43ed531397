"""`torch_neuronx.nki_kernel`: which NKI there is."""

IS_NKI_V2_AVAILABLE = True
__all__ = ["IS_NKI_V2_AVAILABLE"]
