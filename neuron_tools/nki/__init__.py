"""The NKI language and instruction set: kernels traced into Programs, their values computed on the host."""
