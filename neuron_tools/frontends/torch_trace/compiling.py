"""One segment of a model's graph to a `.neff` archive that can also compute the segment's values."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import fx

from neuron_tools.compiler import CompilerOptions, compile_logical
from neuron_tools.compiler.cached import compilation_key
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.passes.auto_cast import narrow_at_borders
from neuron_tools.frontends.torch_compile.graph_lowering import graph_text, lower_graph
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_trace.collectives import scriptable
from neuron_tools.frontends.torch_trace.inline_weights import INLINE_WEIGHTS, bytes_of, distinct
from neuron_tools.frontends.torch_trace.pipeline import (
    HANDED_ON,
    Stage,
    cut_into_stages,
    seconds_on_one_core,
)
from neuron_tools.frontends.torch_trace.scripted_forms import in_scripted_forms
from neuron_tools.frontends.torch_trace.shapes import describe
from neuron_tools.hardware import NeuronCore
from neuron_tools.neff import Neff, NeffError
from neuron_tools.neff.cache import CompileCache
from neuron_tools.neff.sources import source_lines
from neuron_tools.records.program import Program

VALUES = "values.pt"
"""Attachment: a TorchScript module that computes the segment's values on the CPU, of weights and inputs."""

WEIGHTS = "weights.json"
"""Attachment of an archive without its weights: their names, in the order in which they are passed."""

SIGNATURE = "signature.json"
"""Attachment: element type and shape of each input, as PyTorch has them."""


@dataclass(frozen=True)
class Segment:
    """A piece of a model that runs on the device in one go.

    Attributes:
        name: What the Program is called.
        module: A graph module that takes tensors and returns a flat tuple or one tensor.
        weights: The value of each placeholder that is a weight, by position.
        weight_names: Their names, by position.
        inputs: Example values of the other placeholders, in order.
        weights_apart: Whether weights are passed with each call, and are not in the archive.
        cores: NeuronCores that share it out (NeuronCore Pipeline).
    """

    name: str
    module: fx.GraphModule
    weights: Mapping[int, torch.Tensor]
    weight_names: Mapping[int, str]
    inputs: Sequence[torch.Tensor]
    weights_apart: bool = False
    cores: int = 1

    @property
    def arguments(self) -> list[torch.Tensor]:
        """A value per placeholder."""
        remaining = iter(self.inputs)
        count = len(self.weights) + len(self.inputs)
        return [self.weights[i] if i in self.weights else next(remaining) for i in range(count)]


class _WeightsFirst(torch.nn.Module):
    """A segment as a function of its weights, then its inputs; returns a tuple."""

    def __init__(self, segment: Segment) -> None:
        super().__init__()
        self._module = scriptable(in_scripted_forms(segment.module))
        self._positions = tuple(segment.weights)
        self._count = len(segment.weights) + len(segment.inputs)

    def forward(self, *given: torch.Tensor) -> Any:
        weights, remaining = dict(zip(self._positions, given)), iter(given[len(self._positions) :])
        arguments = [weights[i] if i in weights else next(remaining) for i in range(self._count)]
        result = self._module(*arguments)
        return result if isinstance(result, tuple) else (result,)


def share_out_cores(
    segments: Mapping[str, Segment], core: NeuronCore, options: CompilerOptions
) -> dict[str, Segment]:
    """Leave a segment on one core that takes less than a core's share of the whole model.

    Cut into stages, a small one would let each request wait at every core for the one before it to pass.

    Args:
        segments: Those of one model, by name.
        core: What each core is.
        options: What they will be compiled with.
    """
    cores = max(segment.cores for segment in segments.values())
    if cores == 1 or len(segments) == 1:
        return dict(segments)
    seconds = {
        name: seconds_on_one_core(segment.module, _weights_of(segment), cores, core, options)
        for name, segment in segments.items()
    }
    share = sum(seconds.values()) / cores
    return {
        name: segment if seconds[name] > share else replace(segment, cores=1)
        for name, segment in segments.items()
    }


def compile_segment(
    segment: Segment, core: NeuronCore, options: CompilerOptions, cache: CompileCache | None
) -> Neff:
    """Lower, compile and pack a segment, whose Program may be in a cache."""
    arguments = [StoredTensor.of(value) for value in segment.arguments]
    graph, options = segment.module.graph, replace(options, inline_weights=not segment.weights_apart)
    cut = _stages(segment, core, options)
    if len(cut) > 1:
        options = replace(options, resident_weight_bytes=_resident_bytes(segment, len(cut), core, options))
    modules = _modules(segment, cut, options)
    program, *stages = (cached_program(module, core, options, cache) for module in modules)
    inlined = [] if segment.weights_apart else list(segment.weights.values())
    kept, places = distinct(inlined)
    passed = [(place, describe(weight)) for place, weight in zip(places, inlined)]
    return Neff(
        program,
        stablehlo=graph_text(graph, arguments).text,
        options=asdict(options),
        sources=source_lines(program),
        attachments={
            VALUES: _values(segment),
            SIGNATURE: json.dumps([describe(value) for value in segment.inputs]).encode(),
            WEIGHTS: json.dumps(weight_order(segment) if segment.weights_apart else []).encode(),
            INLINE_WEIGHTS: json.dumps(passed).encode(),
            HANDED_ON: json.dumps([stage.handed_on_bytes for stage in cut]).encode(),
        },
        weights=[bytes_of(weight) for weight in kept],
        stages=stages,
    )


def _resident_bytes(segment: Segment, count: int, core: NeuronCore, options: CompilerOptions) -> int:
    """Of weights that each core keeps: where not all fit, half of SBUF is left to load the others ahead."""
    narrow = options.auto_cast != "none"
    weights = segment.weights.values()
    sizes = (2 if narrow and weight.is_floating_point() else weight.element_size() for weight in weights)
    total = sum(weight.numel() * size for weight, size in zip(weights, sizes))
    if total <= count * core.weight_cache_bytes:
        return core.weight_cache_bytes
    return min(core.weight_cache_bytes, core.sbuf_partitions * core.sbuf_bytes_per_partition // 2)


def _stages(segment: Segment, core: NeuronCore, options: CompilerOptions) -> list[Stage]:
    """What each core does."""
    placeholders = _placeholders(segment)
    if segment.cores == 1:
        return [Stage(segment.module, tuple(placeholders), ())]
    return cut_into_stages(segment.module, _weights_of(segment), segment.cores, core, options)


def _weights_of(segment: Segment) -> dict[fx.Node, torch.Tensor]:
    placeholders = _placeholders(segment)
    return {placeholders[position]: weight for position, weight in segment.weights.items()}


def _modules(segment: Segment, stages: Sequence[Stage], options: CompilerOptions) -> list[Module]:
    placeholders = _placeholders(segment)
    values = dict(zip(placeholders, segment.arguments))
    names = {node: segment.weight_names.get(i, f"input{i}") for i, node in enumerate(placeholders)}
    weights = {placeholders[position] for position in segment.weights}
    modules = [
        lower_graph(
            stage.module.graph,
            [StoredTensor.of(values.get(source, source.meta.get("val"))) for source in stage.sources],
            f"{segment.name}.core{number}" if len(stages) > 1 else segment.name,
            parameter_kinds=["weight" if source in weights else "input" for source in stage.sources],
            parameter_names=[names.get(source, source.name) for source in stage.sources],
        )
        for number, stage in enumerate(stages)
    ]
    outside = {*placeholders, *segment.module.graph.output_node().all_input_nodes}
    return [_handing_on(module, stage, outside, options) for module, stage in zip(modules, stages)]


def _handing_on(
    module: Module, stage: Stage, outside: Collection[fx.Node], options: CompilerOptions
) -> Module:
    """A stage's module, which gives and takes what never leaves the cores as they compute with it."""
    ends = [*zip(module.parameters, stage.sources), *zip(module.results, stage.results)]
    return narrow_at_borders(module, {value for value, node in ends if node not in outside}, options)


def _placeholders(segment: Segment) -> list[fx.Node]:
    return [node for node in segment.module.graph.nodes if node.op == "placeholder"]


def weight_order(segment: Segment) -> list[str]:
    """Names of a segment's weights in the order in which they are passed."""
    return [segment.weight_names[position] for position in segment.weights]


def cached_program(
    module: Module, core: NeuronCore, options: CompilerOptions, cache: CompileCache | None
) -> Program:
    """The Program, from the cache where it is there; warns where it cannot be kept."""
    if cache is None:
        return compile_logical(module, core, options)
    key = compilation_key(module, core, options)
    found = cache.find(key)
    if found is not None:
        return found.program
    program = compile_logical(module, core, options)
    try:
        cache.keep(key, Neff(program))
    except NeffError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)
    return program


def _values(segment: Segment) -> bytes:
    with torch.no_grad():
        inputs = (*segment.weights.values(), *segment.inputs)
        script = torch.jit.trace(_WeightsFirst(segment), inputs, check_trace=False)
    buffer = io.BytesIO()
    torch.jit.save(script, buffer)
    return buffer.getvalue()
