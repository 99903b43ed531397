"""split_module: what each physical core of a logical NeuronCore runs of a module."""

from __future__ import annotations

from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.passes.pipeline import plain_form
from neuron_tools.compiler.split.choice import choose
from neuron_tools.compiler.split.costs import Costs
from neuron_tools.compiler.split.local_module import LocalModule, local_module
from neuron_tools.compiler.split.strategy import CORES
from neuron_tools.hardware.neuron_core import NeuronCore


def split_module(module: Module, core: NeuronCore) -> tuple[LocalModule, ...]:
    """One module for each core; a single one where both run the same.

    Each operation is split by batch, rows, columns, heads or summed axis, or done by both, whichever is
    cheapest by `Costs`.
    """
    plain = plain_form(module)
    sharing = choose(plain, Costs(plain, core))
    first = local_module(plain, sharing, 0)
    if not first.depends_on_core:
        return (first,)
    return (first, *(local_module(plain, sharing, number) for number in range(1, CORES)))
