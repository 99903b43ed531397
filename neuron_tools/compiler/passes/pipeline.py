"""The order of the passes: module to module, then the fusion plan."""

from __future__ import annotations

from neuron_tools.compiler.further_passes import FURTHER_PASSES
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.absorb_into_attention import absorb_into_attention
from neuron_tools.compiler.passes.absorb_into_convolutions import absorb_into_convolutions
from neuron_tools.compiler.passes.algebra import simplify_algebra
from neuron_tools.compiler.passes.combine_collectives import combine_collectives
from neuron_tools.compiler.passes.common_subexpressions import eliminate_common_subexpressions
from neuron_tools.compiler.passes.dead_code import eliminate_dead_code
from neuron_tools.compiler.passes.fold_constants import fold_constants
from neuron_tools.compiler.passes.fold_weights import fold_weights
from neuron_tools.compiler.passes.fusion import fuse
from neuron_tools.compiler.passes.groups import FusionPlan
from neuron_tools.compiler.passes.narrow_types import narrow_types
from neuron_tools.compiler.passes.own_results import with_own_results
from neuron_tools.compiler.passes.recognise_activations import recognise_activations
from neuron_tools.compiler.passes.recognise_by_value import recognise_by_value
from neuron_tools.compiler.passes.recognise_dropout import recognise_dropout
from neuron_tools.compiler.passes.recognise_moments import recognise_moments
from neuron_tools.compiler.passes.recognise_products import recognise_products
from neuron_tools.compiler.passes.recognise_rotations import recognise_rotations
from neuron_tools.compiler.passes.recognise_rows import recognise_rows
from neuron_tools.compiler.passes.recognise_windows import recognise_windows
from neuron_tools.compiler.passes.register_arithmetic import address_by_register
from neuron_tools.compiler.passes.simplify import remove_barriers, simplify
from neuron_tools.compiler.passes.sink_transposes import sink_transposes
from neuron_tools.compiler.passes.turn_reductions import turn_reductions

PASSES = (
    address_by_register,
    eliminate_dead_code,
    narrow_types,
    simplify,  # front ends leave identity movements and dynamic forms of static shapes
    fold_constants,
    simplify,  # operands that became constants make movements static
    recognise_windows,  # before rows: an axis that is counted through needs no index at all
    recognise_rows,
    simplify_algebra,
    eliminate_dead_code,  # what nothing needs any more reads nothing: the next ones ask who reads a value
    absorb_into_convolutions,  # first: what a convolution can write turned needs no transpose to sink
    absorb_into_attention,
    sink_transposes,
    simplify,  # transposes that now follow one another become one
    turn_reductions,
    simplify,  # turning a reduction moves its operand: that movement may meet another
    absorb_into_convolutions,
    recognise_rotations,
    recognise_products,
    eliminate_common_subexpressions,
    combine_collectives,  # after those that are the same have become one, before what barriers hold apart may
    remove_barriers,
    recognise_activations,
    recognise_by_value,
    recognise_moments,
    recognise_dropout,
    simplify,  # what was recognised leaves movements that only its parts needed
    eliminate_dead_code,
)
"""Module-to-module passes, in order. `simplify` runs after each pass that leaves data movement behind, since
the next ones look for operations with no movement between them."""
_PLAIN_FORM = 8
"""Passes after which a module is in its plainest StableHLO form: nothing but rows is recognised yet."""
_FEW_OPERATIONS = 1
"""A module of one operation needs none of them but `simplify`."""


def optimise(module: Module) -> Module:
    """Run the module-to-module passes; each result that they merged with another value is a copy of it."""
    return with_own_results(_transformed(module), module)


def _transformed(module: Module) -> Module:
    if len(module.operations) <= _FEW_OPERATIONS:
        return remove_barriers(simplify(narrow_types(module)))
    for transform in PASSES:
        module = transform(module)
    further = [transform for _, transform in FURTHER_PASSES.load_all()]
    for transform in (*further, simplify, eliminate_dead_code) if further else ():
        module = transform(module)
    return module


def plain_form(module: Module) -> Module:
    """The module without constants and movements that only its front end needed."""
    for transform in PASSES[:_PLAIN_FORM]:
        module = transform(module)
    return module


def plan_module(module: Module, options: CompilerOptions) -> FusionPlan:
    """The groups of a module that become one loop each."""
    return _planned(optimise(module), options)


def plan_body(module: Module, options: CompilerOptions) -> FusionPlan:
    """The groups of a loop's or branch's body: what it leaves as it was stays where that is."""
    return _planned(_transformed(module), options)


def _planned(module: Module, options: CompilerOptions) -> FusionPlan:
    if options.inline_weights and options.fuse:
        module = fold_weights(module)
    return fuse(module, fuse_operations=options.fuse)
