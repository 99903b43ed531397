"""`torch_xla.utils.checkpoint`: activation checkpointing, which is PyTorch's own here."""

from torch.utils.checkpoint import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
