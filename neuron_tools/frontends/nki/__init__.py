"""NKI kernels that a captured program runs: timed on the simulated device, values computed on the host."""
