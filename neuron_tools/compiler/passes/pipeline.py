"""The order of the passes: module to module, then the fusion plan."""

from __future__ import annotations

from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.algebra import simplify_algebra
from neuron_tools.compiler.passes.common_subexpressions import eliminate_common_subexpressions
from neuron_tools.compiler.passes.dead_code import eliminate_dead_code
from neuron_tools.compiler.passes.fold_constants import fold_constants
from neuron_tools.compiler.passes.fusion import fuse
from neuron_tools.compiler.passes.groups import FusionPlan
from neuron_tools.compiler.passes.narrow_types import narrow_types
from neuron_tools.compiler.passes.recognise_activations import recognise_activations
from neuron_tools.compiler.passes.recognise_by_value import recognise_by_value
from neuron_tools.compiler.passes.recognise_moments import recognise_moments
from neuron_tools.compiler.passes.recognise_products import recognise_products
from neuron_tools.compiler.passes.recognise_rotations import recognise_rotations
from neuron_tools.compiler.passes.recognise_windows import recognise_windows
from neuron_tools.compiler.passes.register_arithmetic import address_by_register
from neuron_tools.compiler.passes.simplify import simplify
from neuron_tools.compiler.passes.sink_transposes import sink_transposes
from neuron_tools.compiler.passes.turn_reductions import turn_reductions

PASSES = (
    address_by_register,
    eliminate_dead_code,
    narrow_types,
    simplify,
    fold_constants,
    simplify,
    simplify_algebra,
    sink_transposes,
    simplify,
    turn_reductions,
    simplify,
    recognise_rotations,
    recognise_products,
    recognise_windows,
    eliminate_common_subexpressions,
    recognise_activations,
    recognise_by_value,
    recognise_moments,
    simplify,
    eliminate_dead_code,
)
"""Module-to-module passes, in order."""

_FEW_OPERATIONS = 1
"""A module of one operation needs none of them but `simplify`."""


def optimise(module: Module) -> Module:
    """Run the module-to-module passes."""
    if len(module.operations) <= _FEW_OPERATIONS:
        return simplify(narrow_types(module))
    for transform in PASSES:
        module = transform(module)
    return module


def plan_module(module: Module, options: CompilerOptions) -> FusionPlan:
    """The groups of a module that become one loop each."""
    return fuse(optimise(module), fuse_operations=options.fuse)
