"""`torch_xla.amp.syncfree.adam`: one of its optimizers."""

from torch.optim import Adam

__all__ = ["Adam"]
