"""The compiler's front door: a StableHLO module (as records) to a Program for one NeuronCore."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.repeat import EMITTERS, generate_plan
from neuron_tools.compiler.codegen.trigger_order import trigger_when_ready
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.auto_cast import auto_cast
from neuron_tools.compiler.passes.groups import FusionPlan
from neuron_tools.compiler.passes.pipeline import plan_module
from neuron_tools.compiler.resident_weights import ResidentWeights
from neuron_tools.compiler.split.local_module import LocalModule
from neuron_tools.compiler.split.split import split_module
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import Program, TensorKind, joined_cores
from neuron_tools.simulator.builder import ProgramBuilder

_PARAMETER_KINDS = {"input": TensorKind.INPUT, "weight": TensorKind.WEIGHT}


def compile_module(module: Module, core: NeuronCore, options: CompilerOptions | None = None) -> Program:
    """Compile a module for a core. The same module, core and options give the same Program.

    Never refuses an operation: what has no generator is costed by its bytes and named in
    `Program.warnings`.
    """
    return _compiled(module, core, options or CompilerOptions())[0]


def _compiled(module: Module, core: NeuronCore, options: CompilerOptions) -> tuple[Program, tuple[int, ...]]:
    """The Program, and the tensor that each result of the module is in; -1 where it has none."""
    weights = ResidentWeights(core, options.resident_weight_bytes)
    core = weights.beside
    plan = plan_module(auto_cast(module, options), options)
    builder = ProgramBuilder(module.name, target=core.target)
    for operation in module.framework:
        builder.framework(operation)
    for warning in plan.module.warnings:
        builder.warning(warning)
    context = Context(plan, builder, core, options, EMITTERS, weights)
    _define_parameters(context, plan)
    generate_plan(context)
    weights.leave_loaded(builder)
    trigger_when_ready(builder, core)
    return builder.finish(), tuple(map(context.tensor_of, plan.module.results))


def compile_logical(module: Module, core: NeuronCore, options: CompilerOptions | None = None) -> Program:
    """Compile a module for a logical NeuronCore, whose physical cores share the work.

    Args:
        module: The whole computation.
        core: With as many physical cores as `core.logical_core_size` says, which share its HBM.
        options: How to compile.
    """
    options = options or CompilerOptions()
    if core.logical_core_size == 1:
        return compile_module(module, core, options)
    parts = split_module(auto_cast(module, options), core)
    options = replace(options, auto_cast="none")
    programs = [_of_whole_tensors(*_compiled(part.module, core, options), module, part) for part in parts]
    return joined_cores(programs if len(programs) > 1 else programs * 2)


def _of_whole_tensors(program: Program, results: Sequence[int], module: Module, part: LocalModule) -> Program:
    """The Program with parameters and results as they are in HBM, of which a core may have a half."""
    tensors = list(program.tensors)
    for row, number in enumerate(part.parameters):
        tensors[row] = replace(tensors[row], shape=module.shape_of(module.parameters[number]))
    for row, own, whole in zip(results, part.module.results, module.results):
        size = part.module.values[own].type.element_count
        if row >= len(part.parameters) and math.prod(tensors[row].shape) == size:
            tensors[row] = replace(tensors[row], shape=module.shape_of(whole))
    return replace(program, tensors=tuple(tensors))


def _define_parameters(context: Context, plan: FusionPlan) -> None:
    module = plan.module
    for index, value in enumerate(module.parameters):
        kind = module.parameter_kinds[index] if index < len(module.parameter_kinds) else "input"
        name = module.parameter_names[index] if index < len(module.parameter_names) else f"input.{index}"
        context.define(value, _PARAMETER_KINDS.get(kind, TensorKind.INPUT), name)
