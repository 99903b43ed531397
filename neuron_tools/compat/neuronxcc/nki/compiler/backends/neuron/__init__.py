"""Parts of the older compiler's package that kernels import."""
