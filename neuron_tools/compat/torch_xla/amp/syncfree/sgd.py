"""`torch_xla.amp.syncfree.sgd`: one of its optimizers."""

from torch.optim import SGD

__all__ = ["SGD"]
