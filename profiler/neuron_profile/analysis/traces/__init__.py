"""Analyses of traces of other tools: torch.profiler, JAX, Perfetto, Chrome."""
