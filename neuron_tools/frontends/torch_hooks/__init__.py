"""Hooks into PyTorch that tell the device whose work it does: modules, optimizers, ranges, backward."""
