"""`nki_cpu_simulator`: AWS's simulator of kernels, under whose name nki-library's tests look for `nki`."""

import importlib
import sys

from neuron_tools import compat

compat.install()
_PARTS = ("builtin", "compiler", "isa", "isa.constants", "language", "language.dtypes", "tensor", "typing")

nki = importlib.import_module("nki")
sys.modules[f"{__name__}.nki"] = nki
for _part in _PARTS:
    sys.modules[f"{__name__}.nki.{_part}"] = importlib.import_module(f"nki.{_part}")
