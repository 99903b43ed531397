"""`torch_xla.amp.syncfree`: optimizers that never wait for the device; PyTorch's own do not here."""

from torch.optim import SGD, Adam, AdamW

__all__ = ["SGD", "Adam", "AdamW"]
