"""Compiled artifacts: `.neff` archives on disk, and the cache of what was compiled before."""

from neuron_tools.neff.archive import Neff, NeffError, read_neff, write_neff

__all__ = ["Neff", "NeffError", "read_neff", "write_neff"]
