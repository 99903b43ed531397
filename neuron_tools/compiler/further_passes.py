"""Compiler passes that other packages bring; none is loaded to know which there are."""

from __future__ import annotations

from neuron_tools.doors import Door

FURTHER_PASSES = Door("neuron_tools.compiler_passes", "compiler pass")
"""Each a function from `Module` to `Module`; they run after ours, by name."""
