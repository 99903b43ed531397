"""User code to StableHLO: PyTorch eager, torch.compile, JAX and NKI, each in a package of its own."""
