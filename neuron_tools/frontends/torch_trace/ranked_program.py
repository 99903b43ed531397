"""A model that is traced once and runs on several NeuronCores at once, each with its own weights and states.

Neither is part of the archive: a call takes them by name, so that models for several shapes share them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.compiler import CompilerOptions
from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_lowering.meshes import tracing_ranks
from neuron_tools.frontends.torch_trace.compiling import Segment, compile_segment
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.exported import ExportedModel, as_module, export_model, on_host
from neuron_tools.frontends.torch_trace.inline_weights import INLINE_WEIGHTS, bytes_of
from neuron_tools.frontends.torch_trace.observed import ObservedModel
from neuron_tools.frontends.torch_trace.shapes import describe
from neuron_tools.frontends.torch_trace.states import checked_aliases
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.neff import Neff
from neuron_tools.neff.cache import CompileCache

DESCRIPTION = "ranks.json"
"""Attachment of an archive for several ranks: what `RankedCall` holds."""
_PREFIX = "model."


@frozen
class RankedCall:
    """How such a program is called.

    Attributes:
        weights: Names of its first arguments, which each rank has values of.
        states: Names of the next ones; the inputs of the call follow.
        next_values: For each state, which result is its next value.
        results: Which results the caller gets, in order.
        result_shapes: Element type and shape of each of these.
        weight_shapes: Likewise of the weights.
    """

    weights: tuple[str, ...]
    states: tuple[str, ...]
    next_values: tuple[int, ...]
    results: tuple[int, ...]
    result_shapes: tuple[str, ...]
    weight_shapes: tuple[str, ...]

    @classmethod
    def of(cls, neff: Neff) -> RankedCall:
        """That of an archive.

        Raises:
            TraceError: It is for one core.
        """
        if DESCRIPTION not in neff.attachments:
            raise TraceError("The archive is for one NeuronCore: call it as torch_neuronx.trace gives it.")
        kept = json.loads(neff.attachments[DESCRIPTION])
        return cls(**{name: tuple(values) for name, values in kept.items()})


@dataclass(frozen=True)
class RankedTrace:
    """A model that was traced for all ranks.

    Attributes:
        call: How its program is called.
        segment: Its graph, with example values.
        structure: How the model's results are put together.
        places: For each leaf of that, which of the caller's results it is; None: a state's next value.
    """

    call: RankedCall
    segment: Segment
    structure: pytree.TreeSpec
    places: tuple[int | None, ...]

    @property
    def input_count(self) -> int:
        """How many inputs a call has."""
        return len(self.segment.inputs) - len(self.call.states)

    @property
    def state_and_weight_shapes(self) -> list[str]:
        """Element types and shapes of the weights, then of the states."""
        states = self.segment.inputs[: len(self.call.states)]
        return [*self.call.weight_shapes, *map(describe, states)]

    def without_values(self) -> RankedTrace:
        """The same trace, which keeps no memory of the weights: each call brings its own."""
        first = len(self.segment.weights) - len(self.call.weights)
        weights = [*self.segment.weights.items()]
        shapes = {place: weight.to("meta") for place, weight in weights[first:]}
        return replace(self, segment=replace(self.segment, weights={**dict(weights[:first]), **shapes}))

    def compiled(self, core: NeuronCore, options: CompilerOptions, cache: CompileCache | None) -> Neff:
        """The archive, which has the model's constants in it."""
        values = {
            place: torch.zeros_like(weight, device="cpu") if weight.is_meta else weight
            for place, weight in self.segment.weights.items()
        }
        neff = compile_segment(replace(self.segment, weights=values), core, options, cache)
        constants = [*values.values()][: len(values) - len(self.call.weights)]
        places = [(number, describe(constant)) for number, constant in enumerate(constants)]
        call = {name: getattr(self.call, name) for name in RankedCall.__annotations__}
        added = {INLINE_WEIGHTS: json.dumps(places).encode(), DESCRIPTION: json.dumps(call).encode()}
        return replace(
            neff,
            attachments={**neff.attachments, **added},
            weights=[bytes_of(constant) for constant in constants],
        )


def trace_ranks(
    model: Callable[..., Any],
    inputs: Sequence[Any],
    keywords: Sequence[str] | None = None,
    states: Mapping[torch.Tensor, int] | None = None,
) -> RankedTrace:
    """Trace a model as it is for each rank.

    Args:
        model: Module with the parameters of one rank, or function of tensors.
        inputs: Example inputs: tensors, also in lists.
        keywords: Names by which the model takes them; None: in order.
        states: Parameters or buffers that are states -> which result, counted flat, is the next value of
            each; None: the buffers that the forward pass writes.

    Raises:
        TraceError: The model cannot be turned into a graph, or a state can have no next value.
    """
    module = on_host(as_module(model))
    observed = ObservedModel(module, keywords)
    with executables.without_provider(), torch.no_grad(), tracing_ranks():
        exported = export_model(observed, inputs, type(module).__name__, by_example=True)
        parts = _Parts(module, exported, observed.set_anew, states)
        _forget_wrapper(exported.graph_module.graph)
        call, segment = parts.call(pytree.tree_leaves(inputs))
    return RankedTrace(call, segment, parts.structure, parts.places)


class _Parts:
    """What the arguments and results of an exported model are.

    Args:
        model: As it was given.
        exported: Of an `ObservedModel` of it.
        set_anew: Buffers whose new values are the last results.
        states: See `trace_ranks`.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        exported: ExportedModel,
        set_anew: Sequence[str],
        states: Mapping[torch.Tensor, int] | None,
    ) -> None:
        self._exported = exported
        first_names = _first_names(model)
        given = [name.removeprefix(_PREFIX) for name in exported.weight_names]
        self._names = [first_names.get(name, name) for name in given]
        self._persistent = set(model.state_dict(keep_vars=True))
        self.structure = exported.structure.child(0)
        first = len(exported.written)
        self._own = range(first, first + exported.output_count - len(set_anew))
        if states is None:
            written = enumerate(name.removeprefix(_PREFIX) for name in exported.written)
            self._next = {name: number for number, name in written}
            self._next |= {name: number for number, name in enumerate(set_anew, self._own.stop)}
        else:
            made = [_results(exported.graph_module.graph)[number] for number in self._own]
            known = checked_aliases(exported.name, _names(model), made, states)
            self._next = {name: self._own[number] for name, number in known.items()}
        taken = set(self._next.values())
        self._results = [number for number in self._own if states is None or number not in taken]

    @property
    def places(self) -> tuple[int | None, ...]:
        """See `RankedTrace`."""
        return tuple(self._results.index(number) if number in self._results else None for number in self._own)

    def call(self, inputs: Sequence[torch.Tensor]) -> tuple[RankedCall, Segment]:
        """The graph, whose placeholders are constants, then what `RankedCall` names, and how it is called."""
        exported = self._exported
        graph = exported.graph_module.graph
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        values = dict(zip(placeholders, [*exported.weights, *inputs]))
        named = zip(placeholders, self._names)
        names = {node: name for node, name in named if node.users or name in self._next}
        states = [node for node in names if names[node] in self._next]
        weights = [node for node in names if node not in states and names[node] in self._persistent]
        constants = [node for node in names if node not in states and node not in weights]
        order = [*constants, *weights, *states, *placeholders[len(self._names) :]]
        known = len(constants) + len(weights)
        segment = Segment(
            name=exported.name,
            module=_reordered(exported.graph_module, order),
            weights={index: values[node] for index, node in enumerate(order[:known])},
            weight_names={index: names[node] for index, node in enumerate(order) if node in names},
            inputs=[values[node] for node in order[known:]],
            weights_apart=True,
        )
        made = _results(graph)
        call = RankedCall(
            weights=tuple(names[node] for node in weights),
            states=tuple(names[node] for node in states),
            next_values=tuple(self._next[names[node]] for node in states),
            results=tuple(self._results),
            result_shapes=tuple(describe(made[number].meta["val"]) for number in self._results),
            weight_shapes=tuple(describe(values[node]) for node in weights),
        )
        return call, segment


def _forget_wrapper(graph: fx.Graph) -> None:
    """Let operations stand in the model's own modules, and not in the one that observes it."""
    for node in graph.nodes:
        if inner := node.meta.get("nn_module_stack"):
            node.meta["nn_module_stack"] = {
                key: (path[len(_PREFIX) :], kind) for key, (path, kind) in inner.items() if path
            }


def _reordered(module: fx.GraphModule, order: Sequence[fx.Node]) -> fx.GraphModule:
    """The same graph with its placeholders in another order, without those that are left out."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in [*order, *(node for node in module.graph.nodes if node.op != "placeholder")]:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    return fx.GraphModule(module, graph)


def _results(graph: fx.Graph) -> list[Any]:
    output = next(node for node in reversed(graph.nodes) if node.op == "output")
    return list(output.args[0])


def named_tensors(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Parameters and buffers, those of several names under each."""
    named = chain(model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False))
    return [*named]


def _names(model: torch.nn.Module) -> dict[int, str]:
    """The first name of each parameter and buffer: checkpoints have that."""
    return {id(tensor): name for name, tensor in reversed(named_tensors(model))}


def _first_names(model: torch.nn.Module) -> dict[str, str]:
    first = _names(model)
    return {name: first[id(tensor)] for name, tensor in named_tensors(model)}
