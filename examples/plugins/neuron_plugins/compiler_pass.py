"""A compiler pass: tells how many operations it was given, and changes nothing."""

from __future__ import annotations

from dataclasses import replace

from neuron_tools.compiler.hlo import Module


def count_operations(module: Module) -> Module:
    """The module with a warning that counts its operations; warnings are shown with the profile."""
    sentence = f"{module.name} has {len(module.operations)} operations after optimisation."
    return replace(module, warnings=(*module.warnings, sentence))
