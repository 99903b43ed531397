"""`torch_xla.amp.syncfree.adamw`: one of its optimizers."""

from torch.optim import AdamW

__all__ = ["AdamW"]
