"""The compiler's front door: a StableHLO module (as records) to a Program for one NeuronCore."""

from __future__ import annotations

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.repeat import EMITTERS, generate_plan
from neuron_tools.compiler.codegen.trigger_order import trigger_when_ready
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.auto_cast import auto_cast
from neuron_tools.compiler.passes.groups import FusionPlan
from neuron_tools.compiler.passes.pipeline import plan_module
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import Program, TensorKind
from neuron_tools.simulator.builder import ProgramBuilder

_PARAMETER_KINDS = {"input": TensorKind.INPUT, "weight": TensorKind.WEIGHT}


def compile_module(module: Module, core: NeuronCore, options: CompilerOptions | None = None) -> Program:
    """Compile a module for a core. The same module, core and options give the same Program.

    Never refuses an operation: what has no generator is costed by its bytes and named in
    `Program.warnings`.
    """
    options = options or CompilerOptions()
    plan = plan_module(auto_cast(module, options), options)
    builder = ProgramBuilder(module.name, target=core.target)
    for operation in module.framework:
        builder.framework(operation)
    for warning in plan.module.warnings:
        builder.warning(warning)
    context = Context(plan, builder, core, options, EMITTERS)
    _define_parameters(context, plan)
    generate_plan(context)
    trigger_when_ready(builder, core)
    return builder.finish()


def _define_parameters(context: Context, plan: FusionPlan) -> None:
    module = plan.module
    for index, value in enumerate(module.parameters):
        kind = module.parameter_kinds[index] if index < len(module.parameter_kinds) else "input"
        name = module.parameter_names[index] if index < len(module.parameter_names) else f"input.{index}"
        context.define(value, _PARAMETER_KINDS.get(kind, TensorKind.INPUT), name)
