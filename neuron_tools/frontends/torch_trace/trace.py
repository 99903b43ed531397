"""Traces a model: exports it, compiles its device segments, and wraps them into one TorchScript module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools import hardware
from neuron_tools.compiler import CompilerOptions
from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_compile.graph_lowering import unlowered_calls
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_trace import operator as operator  # registers what traced models call
from neuron_tools.frontends.torch_trace.compiling import Segment, compile_segment, share_out_cores
from neuron_tools.frontends.torch_trace.errors import NothingToRun, TraceError
from neuron_tools.frontends.torch_trace.exported import (
    ExportedModel,
    as_module,
    export_model,
    on_host,
)
from neuron_tools.frontends.torch_trace.placement import note_loaded
from neuron_tools.frontends.torch_trace.segments import (
    SEGMENT_PREFIX,
    Segmented,
    SegmentRules,
    cut_into_segments,
)
from neuron_tools.frontends.torch_trace.states import States, find_states
from neuron_tools.frozen import frozen
from neuron_tools.neff import Neff, NeffError, write_neff
from neuron_tools.neff.cache import cache_of_user
from neuron_tools.neff.files import Mapped, mapped

GRAPH_FILE = "graph.neff"


@frozen
class TraceOptions:
    """What may be chosen about a trace.

    Attributes:
        target: Generation or instance to compile for.
        compiler: Options of the compiler.
        rules: What runs on the device.
        folder: Where the archives are kept too, as `graph.neff` or `graph_<n>.neff`; None: nowhere.
        weights_apart: Leave weights out of the archives: `replace_weights` gives the model others.
        cores: NeuronCores that share each segment out (NeuronCore Pipeline).
        cache_folder: Where compiled programs are kept for the next time; "": where the environment says.
        lnc: Physical cores of a logical NeuronCore; 0: as the environment says.
        states: Parameters that are states -> which result, counted flat, is the next value of each.
    """

    target: str = "trn2"
    compiler: CompilerOptions = field(default_factory=CompilerOptions)
    rules: SegmentRules = field(default_factory=lambda: SegmentRules(whole=True))
    folder: Path | None = None
    weights_apart: bool = False
    cores: int = 1
    cache_folder: str = ""
    lnc: int = 0
    states: Mapping[torch.Tensor, int] = field(default_factory=dict)


def trace(
    function: Callable[..., Any], example_inputs: Any, options: TraceOptions | None = None
) -> torch.jit.ScriptModule:
    """Compile a model ahead of time, for the shapes and element types of example inputs.

    Args:
        function: A module or function of tensors; modules are traced as they are (call `eval` first).
        example_inputs: A tensor or a tuple of tensors.
        options: What is compiled, for what.

    Returns:
        A module that `torch.jit.save` and `load` keep; it takes tensors on the CPU, and gives such.

    Raises:
        TraceError: The model cannot be turned into a graph.
        NothingToRun: None of it can run on the device.
        NeffError: The archives cannot be written to `options.folder`, or not be kept in the temporary folder.
    """
    options = options or TraceOptions()
    inputs = example_tensors(example_inputs)
    given = as_module(function)
    model = on_host(given)
    with executables.without_provider(), torch.no_grad():
        exported = export_model(model, inputs)
        states = find_states(given, exported, options.states)
        segmented = _segmented(exported, inputs, options.rules)
        artifacts = _compile(_Parts(exported, segmented, states), inputs, options)
        _keep([artifact.neff for artifact in artifacts.values()], options.folder)
        script = _script(_Parts(exported, segmented, states), artifacts, inputs, options.weights_apart)
    note_loaded([script])
    return script


def example_tensors(example_inputs: Any) -> tuple[torch.Tensor, ...]:
    """Example inputs as a tuple, on the CPU.

    Raises:
        TraceError: They are no tensors.
    """
    inputs = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    wrong = [type(value).__name__ for value in inputs if not isinstance(value, torch.Tensor)]
    if wrong or not inputs:
        raise TraceError(
            f"Example inputs are a tensor or a tuple of tensors, not {', '.join(wrong) or 'nothing'}: wrap "
            "the model in a module that takes tensors only."
        )
    return tuple(value.detach().cpu() for value in inputs)


def _segmented(exported: ExportedModel, inputs: Sequence[torch.Tensor], rules: SegmentRules) -> Segmented:
    graph_module = exported.graph_module
    arguments = [StoredTensor.of(value) for value in (*exported.weights, *inputs)]
    unlowered = set() if rules.whole else unlowered_calls(graph_module.graph, arguments)
    segmented = cut_into_segments(graph_module, lambda node: node not in unlowered, rules)
    if not any(node.op == "call_module" for node in segmented.graph_module.graph.nodes):
        names = ", ".join(sorted(segmented.host_operators)) or "none"
        raise NothingToRun(
            f"No operation of {exported.name} can run on the device (operators: {names}): run it on the CPU."
        )
    return segmented


@dataclass(frozen=True)
class _Artifact:
    """A segment's archive, and its results for the example inputs."""

    neff: Neff
    results: Sequence[torch.Tensor]


@dataclass(frozen=True)
class _Parts:
    """A model that is being traced."""

    exported: ExportedModel
    segmented: Segmented
    states: States


def _compile(parts: _Parts, inputs: Sequence[torch.Tensor], options: TraceOptions) -> dict[str, _Artifact]:
    """What each segment became, by its name."""
    core = hardware.get(options.target, lnc=options.lnc or hardware.chosen_lnc(options.target))
    collector = _SegmentCollector(parts, options)
    collector.run(*parts.exported.weights, *inputs)
    cache = cache_of_user(folder=options.cache_folder)
    return {
        name: _Artifact(compile_segment(segment, core, options.compiler, cache), collector.results[name])
        for name, segment in share_out_cores(collector.segments, core, options.compiler).items()
    }


class _SegmentCollector(fx.Interpreter):
    """Runs a graph on example values and takes down what each segment is given and gives."""

    def __init__(self, parts: _Parts, options: TraceOptions) -> None:
        super().__init__(parts.segmented.graph_module)
        self._options = options
        exported, placeholders = parts.exported, _placeholders(parts.segmented.graph_module)
        known = enumerate(zip(placeholders, zip(exported.weight_names, exported.weights)))
        self._weights = dict(pair for index, pair in known if index not in parts.states.results)
        self._name = exported.name
        self.segments: dict[str, Segment] = {}
        self.results: dict[str, Sequence[torch.Tensor]] = {}

    def run_node(self, node: fx.Node) -> Any:
        """Run a node; a segment is noted first."""
        if node.op != "call_module":
            return super().run_node(node)
        self._note(node)
        result = super().run_node(node)
        self.results[str(node.target)] = result if isinstance(result, tuple) else (result,)
        return result

    def _note(self, node: fx.Node) -> None:
        target = str(node.target)
        known = {i: self._weights[arg] for i, arg in enumerate(node.args) if arg in self._weights}
        given = [self.env[arg] for i, arg in enumerate(node.args) if i not in known]
        number = target.removeprefix(SEGMENT_PREFIX)
        self.segments[target] = Segment(
            name=self._name if number == "0" else f"{self._name}_{number}",
            module=self.submodules[target],
            weights={index: weight for index, (_, weight) in known.items()},
            weight_names={index: name for index, (name, _) in known.items()},
            inputs=given,
            weights_apart=self._options.weights_apart,
            cores=self._options.cores if known else 1,
        )


class _DeviceSegment(torch.nn.Module):
    """A segment in the traced module: its archive, run by `neuron_tools::execute`.

    Args:
        neff: The archive.
        weight_positions: Arguments that are weights, and are not passed on.
        single: Whether it returns one tensor.
        weights: Those that are not in the archive.
        kept: Argument that is a state -> which result is its next value.
    """

    def __init__(
        self,
        neff: Neff,
        weight_positions: Sequence[int],
        single: bool,
        weights: Sequence[torch.Tensor],
        kept: Mapping[int, int],
    ) -> None:
        super().__init__()
        self._weight_count = len(weights)
        for index, weight in enumerate(weights):
            self.register_buffer(f"weight_{index}", weight.clone())
        archive = _mapped(neff)
        self.register_buffer("artifact", torch.frombuffer(archive.memory, dtype=torch.uint8))
        self.digest = archive.sha256
        self._weight_positions = frozenset(weight_positions)
        self._single = single
        self._kept = kept

    def forward(self, *arguments: torch.Tensor) -> Any:
        passed = [index for index in range(len(arguments)) if index not in self._weight_positions]
        inputs = [arguments[index] for index in passed]
        weights = [getattr(self, f"weight_{index}") for index in range(self._weight_count)]
        if self._kept:
            states = [passed.index(index) for index in self._kept]
            results = torch.ops.neuron_tools.execute_states(
                self.artifact, self.digest, weights, inputs, states, list(self._kept.values())
            )
        elif weights:
            results = torch.ops.neuron_tools.execute_with(self.artifact, self.digest, weights, inputs)
        else:
            results = torch.ops.neuron_tools.execute(self.artifact, self.digest, inputs)
        return results[0] if self._single else tuple(results)


def _mapped(neff: Neff) -> Mapped:
    try:
        return mapped(neff.write_to)
    except OSError as error:
        raise NeffError(
            f"The compiled model cannot be kept in the temporary folder ({error.strerror}): free some "
            "space, or name another folder in TMPDIR."
        ) from error


class _TracedModel(torch.nn.Module):
    """The whole model: segments on the device, what is left on the CPU, results in the model's structure."""

    def __init__(self, parts: _Parts, on_host: Sequence[int]) -> None:
        super().__init__()
        exported = parts.exported
        self._graph_module = parts.segmented.graph_module
        self._exported = (len(exported.weights), exported.output_count, exported.structure)
        self._states = dict(parts.states.results)
        self._left = parts.states.left_to(self._graph_module.graph, exported.output_count)
        for index in parts.states.results:
            state = torch.nn.Parameter(exported.weights[index].clone(), requires_grad=False)
            self.register_parameter(f"weight_{index}", state)
        for index in set(on_host) - set(parts.states.results):
            self.register_buffer(f"weight_{index}", exported.weights[index])

    def forward(self, *inputs: torch.Tensor) -> Any:
        weight_count, output_count, structure = self._exported
        weights = [getattr(self, f"weight_{index}", None) for index in range(weight_count)]
        flat = self._graph_module(*weights, *inputs)
        results = list(flat)[len(flat) - output_count :]
        for index, number in self._left.items():
            getattr(self, f"weight_{index}").copy_(results[number])
        for index, number in self._states.items():
            results[number] = getattr(self, f"weight_{index}")
        return pytree.tree_unflatten(results, structure)


def _script(
    parts: _Parts,
    artifacts: dict[str, _Artifact],
    inputs: Sequence[torch.Tensor],
    weights_apart: bool,
) -> torch.jit.ScriptModule:
    exported, graph_module = parts.exported, parts.segmented.graph_module
    nodes = [node for node in graph_module.graph.nodes if node.op == "call_module"]
    weights = _placeholders(graph_module)[: len(exported.weights)]
    inlined = [node for index, node in enumerate(weights) if index not in parts.states.results]
    results: dict[str, Sequence[torch.Tensor]] = {}
    for node in nodes:
        positions = [index for index, argument in enumerate(node.args) if argument in inlined]
        single = _returns_one(getattr(graph_module, str(node.target)))
        passed = [exported.weights[weights.index(node.args[i])] for i in positions] if weights_apart else []
        kept = parts.states.kept_by(graph_module.graph, node, exported.output_count)
        segment = _DeviceSegment(artifacts[node.target].neff, positions, single, passed, kept)
        setattr(graph_module, str(node.target), segment)
        results[segment.digest] = artifacts[node.target].results
    on_host = [i for i, node in enumerate(weights) if any(user.op != "call_module" for user in node.users)]
    model = _TracedModel(parts, on_host)
    with operator.known_results(results):
        script = _as_script(model, exported.name, inputs)
    for index in parts.states.results:
        getattr(model, f"weight_{index}").copy_(exported.weights[index])
    return script


def _placeholders(graph_module: fx.GraphModule) -> list[fx.Node]:
    return [node for node in graph_module.graph.nodes if node.op == "placeholder"]


def _as_script(model: torch.nn.Module, name: str, inputs: Sequence[torch.Tensor]) -> torch.jit.ScriptModule:
    try:
        script: torch.jit.ScriptModule = torch.jit.trace(
            model, tuple(inputs), strict=False, check_trace=False
        )
    except RuntimeError as error:
        raise TraceError(
            f"The result of {name} cannot be kept by TorchScript: let it return tensors, tuples of them, or "
            "a dictionary whose values are all tensors."
        ) from error
    return script


def _returns_one(segment: fx.GraphModule) -> bool:
    output = next(node for node in reversed(segment.graph.nodes) if node.op == "output")
    return isinstance(output.args[0], fx.Node)


def _keep(artifacts: Sequence[Neff], folder: Path | None) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number, artifact in enumerate(artifacts):
        write_neff(artifact, folder / (GRAPH_FILE if len(artifacts) == 1 else f"graph_{number}.neff"))
