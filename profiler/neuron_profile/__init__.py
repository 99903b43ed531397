"""The `neuron-profile` command: captures, queries, verifies and reports profiles.

In a notebook, `%load_ext neuron_profile` adds the magic `%%neuron_profile`, which captures a cell.
"""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext neuron_profile` calls."""
    from neuron_profile.notebook import load_ipython_extension as load

    load(shell)
