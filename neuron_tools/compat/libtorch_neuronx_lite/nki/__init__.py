"""Kernels in PyTorch graphs."""
