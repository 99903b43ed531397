"""The compiler's front door: a StableHLO module (as records) to a Program for one NeuronCore."""

from __future__ import annotations

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.generate import generate_group
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.algebra import simplify_algebra
from neuron_tools.compiler.passes.common_subexpressions import eliminate_common_subexpressions
from neuron_tools.compiler.passes.dead_code import eliminate_dead_code
from neuron_tools.compiler.passes.dot_operands import absorb_transposes
from neuron_tools.compiler.passes.fold_constants import fold_constants
from neuron_tools.compiler.passes.fusion import FusionPlan, fuse
from neuron_tools.compiler.passes.narrow_types import narrow_types
from neuron_tools.compiler.passes.recognise_activations import recognise_activations
from neuron_tools.compiler.passes.recognise_moments import recognise_moments
from neuron_tools.compiler.passes.simplify import simplify
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.simulator.builder import ProgramBuilder
from neuron_tools.simulator.program import Program, TensorKind

PASSES = (
    eliminate_dead_code,
    narrow_types,
    simplify,
    fold_constants,
    simplify,
    simplify_algebra,
    eliminate_common_subexpressions,
    recognise_activations,
    recognise_moments,
    simplify,
    absorb_transposes,
    eliminate_dead_code,
)
"""Module-to-module passes, in order."""

_PARAMETER_KINDS = {"input": TensorKind.INPUT, "weight": TensorKind.WEIGHT}


def optimise(module: Module) -> Module:
    """Run the module-to-module passes."""
    for transform in PASSES:
        module = transform(module)
    return module


def compile_module(module: Module, core: NeuronCore, options: CompilerOptions | None = None) -> Program:
    """Compile a module for a core. The same module, core and options give the same Program.

    Never refuses an operation: what has no generator is costed by its bytes and named in
    `Program.warnings`.
    """
    options = options or CompilerOptions()
    plan = fuse(optimise(module))
    builder = ProgramBuilder(module.name, target=core.target)
    for operation in module.framework:
        builder.framework(operation)
    for warning in module.warnings:
        builder.warning(warning)
    context = Context(plan, builder, core, options)
    _define_parameters(context, plan)
    for group in plan.groups:
        generate_group(context, group)
    return builder.finish()


def _define_parameters(context: Context, plan: FusionPlan) -> None:
    module = plan.module
    for index, value in enumerate(module.parameters):
        kind = module.parameter_kinds[index] if index < len(module.parameter_kinds) else "input"
        name = module.parameter_names[index] if index < len(module.parameter_names) else f"input.{index}"
        context.define(value, _PARAMETER_KINDS.get(kind, TensorKind.INPUT), name)
