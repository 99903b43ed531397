"""Runs when Python starts below a capture, whose PYTHONPATH names this folder: makes AWS's names importable.

It leaves no trace but that: its folder goes off the path, and the `sitecustomize` it hid runs in its place.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module


def _start() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    try:
        compat = import_module("neuron_tools.compat")
    except ImportError:  # a Python that Neuron Tools is not installed in
        pass
    else:
        compat.install()
    own = sys.modules.pop("sitecustomize", None)
    try:
        import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if own is not None:  # Python looks the module up when its import ends
            sys.modules["sitecustomize"] = own


_start()
