"""`torch_neuronx.xla_impl.trace`: the steps of a trace, as neuronx-distributed's ModelBuilder takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.compat.absent import names_of
from neuron_tools.frontends.torch_trace.compile_graph import compile_graph
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.exported import as_module
from neuron_tools.frontends.torch_trace.rank_models import rank_model
from neuron_tools.frontends.torch_trace.ranked_program import RankedTrace, named_tensors, trace_ranks
from neuron_tools.frontends.torch_trace.shapes import describe, shape_of
from neuron_tools.neff.files import write_whole

from ..proto.metaneff_pb2 import MetaNeff, MetaTensor  # noqa: TID252 - once, under AWS's name
from ..pyhlo.hlo_pb2 import HloModuleProto  # noqa: TID252 - likewise
from .structure import Flattener, Packer

__all__ = [
    "HloArtifacts", "NeffArtifacts", "create_neuron_model", "generate_hlo", "generate_neff",
    "get_torch_dtype",
]  # fmt: skip


@dataclass
class HloArtifacts:
    """A traced model.

    Attributes:
        hlo_module: The model.
        flattener: Makes a flat list of a call's inputs.
        packer: Puts a call's results together.
        metaneff: What inputs and results are.
        weights: Its weights; None: they come later.
        constant_parameter_tensors: Nothing here: constants are part of the model.
        weight_name_to_idx: Name of a weight -> which parameter it is.
    """

    hlo_module: Any
    flattener: Any
    packer: Any
    metaneff: Any
    weights: Any = None
    constant_parameter_tensors: Any = None
    weight_name_to_idx: dict[str, int] | None = None


@dataclass
class NeffArtifacts:
    """A compiled model.

    Attributes:
        neff_filename: Its file.
    """

    neff_filename: str


def get_torch_dtype(data_type: str) -> torch.dtype:
    """The element type that a `MetaTensor` names."""
    dtype: torch.dtype = getattr(torch, data_type)
    return dtype


def generate_hlo(
    func: Callable[..., Any],
    example_inputs: Any,
    input_output_aliases: Mapping[torch.Tensor, int] | None = None,
    *,
    inline_weights_to_neff: bool = False,
    enable_aliasing: bool = False,
    treat_inputs_as_kwargs: bool = False,
    **others: Any,
) -> HloArtifacts:
    """Trace a model once for all ranks.

    Args:
        func: The model, with the parameters of one rank.
        example_inputs: Inputs of the shapes and types that it will be called with; a dictionary by name.
        input_output_aliases: States -> which result, counted flat, is the next value of each.
        inline_weights_to_neff: Must be False: each rank has weights of its own.
        enable_aliasing: Let the buffers that the forward pass writes be states.
        treat_inputs_as_kwargs: Pass the inputs by name.
        **others: Accepted for compatibility.

    Returns:
        The traced model, and what calls it.

    Raises:
        TraceError: The model cannot be turned into a graph, a state can have no next value, or its weights
            shall be in the archive.
    """
    if inline_weights_to_neff:
        raise TraceError("A model for several ranks keeps no weights: let inline_weights_to_neff be False.")
    named = example_inputs if treat_inputs_as_kwargs else None
    inputs = tuple(named.values()) if named else _as_tuple(example_inputs)
    flat, _ = pytree.tree_flatten(inputs)
    states = None if enable_aliasing else input_output_aliases or {}
    trace = trace_ranks(func, inputs, [*named] if named else None, states)
    order, module = _parameters(trace, len(flat)), HloModuleProto.of(trace)
    return HloArtifacts(
        module,
        Flattener(_layout(inputs)),
        _packer(trace),
        _metaneff(trace, flat, module),
        weight_name_to_idx={name: order[name] for name in trace.call.weights},
    )


def generate_neff(
    hlo_artifacts: HloArtifacts,
    compiler_workdir: str | Path,
    compiler_args: str | Sequence[str] | None = None,
    inline_weights_to_neff: bool = False,
    **others: Any,
) -> NeffArtifacts:
    """Compile a traced model into a folder.

    Args:
        hlo_artifacts: The model.
        compiler_workdir: The folder.
        compiler_args: Options of the compiler.
        inline_weights_to_neff: Accepted for compatibility.
        **others: Likewise.

    Returns:
        The file of the compiled model.

    Raises:
        TraceError: Another process traced the model.
        UsageError: An option has a value that does not exist.
        OSError: The folder cannot be written.
    """
    folder = Path(compiler_workdir)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "graph.neff"
    write_whole(file, compile_graph(hlo_artifacts.hlo_module.SerializeToString(), compiler_args or ()))
    return NeffArtifacts(str(file))


def _trace(
    func: Callable[..., Any],
    example_inputs: Any,
    states: Any = None,
    input_output_aliases: Mapping[torch.Tensor, int] | None = None,
    compiler_workdir: str | Path = ".",
    compiler_args: str | Sequence[str] | None = None,
    inline_weights_to_neff: bool = True,
) -> tuple[str, MetaNeff, Flattener, Packer, dict[str, torch.Tensor]]:
    """Trace and compile one rank of a model, as neuronx-distributed's `parallel_model_trace` does in each.

    Args:
        func: The model, with the parameters of this rank.
        example_inputs: Inputs of the shapes and types that it will be called with.
        states: Must be None: states are named by their aliases.
        input_output_aliases: See `generate_hlo`.
        compiler_workdir: The folder of the compiled model.
        compiler_args: Options of the compiler.
        inline_weights_to_neff: Accepted for compatibility: the weights stand beside the archive.

    Returns:
        What `create_neuron_model` takes: the archive's file, what inputs and results are, what makes inputs
        flat and puts results together, and the weights and states by name.

    Raises:
        TraceError: See `generate_hlo`; or states are given.
        OSError: The folder cannot be written.
    """
    if states:
        raise TraceError("External states are not there: let the model have them, and name their aliases.")
    model = as_module(func)
    made = generate_hlo(model, example_inputs, input_output_aliases)
    file = generate_neff(made, compiler_workdir, compiler_args).neff_filename
    named = dict(named_tensors(model))
    keys = [each.checkpoint_key.decode() for each in made.metaneff.input_tensors if each.checkpoint_key]
    return file, made.metaneff, made.flattener, made.packer, {key: named[key].detach() for key in keys}


def create_neuron_model(
    neff_filename: str | Path,
    metaneff: MetaNeff,
    flattener: Flattener,
    packer: Packer,
    example_inputs: Any,
    input_output_aliases: Any = None,
    weights: Mapping[str, torch.Tensor] | None = None,
) -> torch.jit.ScriptModule:
    """The TorchScript module of one rank, whose attribute `model` is loaded as one of several.

    Args:
        neff_filename: As `_trace` returns it, like those that follow.
        metaneff: Accepted for compatibility: the archive says it.
        flattener: Makes inputs a flat list.
        packer: Puts results together.
        example_inputs: Of the trace.
        input_output_aliases: Accepted for compatibility: the archive says it.
        weights: Weights and states by name.

    Raises:
        OSError: The file cannot be read.
    """
    archive = Path(neff_filename).read_bytes()
    return rank_model(archive, weights or {}, flattener, packer, _as_tuple(example_inputs))


def _as_tuple(example_inputs: Any) -> tuple[Any, ...]:
    return (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)


def _layout(inputs: Any) -> Any:
    """The inputs' structure with each tensor's place; lists and tuples are tuples."""
    flat, structure = pytree.tree_flatten(inputs)
    return _plain(pytree.tree_unflatten(range(len(flat)), structure))


def _plain(places: Any) -> Any:
    if isinstance(places, Mapping):
        return {key: _plain(part) for key, part in places.items()}
    return tuple(map(_plain, places)) if isinstance(places, (list, tuple)) else places


def _packer(trace: RankedTrace) -> Packer:
    """Puts the results together; what is left alone when the states are taken away is the result itself."""
    count = len(trace.call.results)
    is_alone = None in trace.places and count == 1
    places = _without_states(pytree.tree_unflatten(trace.places, trace.structure))
    return Packer(0 if is_alone else places, [*range(count)])  # libraries write the list as text and read it


def _without_states(places: Any) -> Any:
    """The results' structure without the next values of states, which the caller does not get."""
    if isinstance(places, Mapping):
        return {name: _without_states(part) for name, part in places.items() if part is not None}
    if isinstance(places, (list, tuple)):
        return type(places)(_without_states(part) for part in places if part is not None)
    return places


def _parameters(trace: RankedTrace, input_count: int) -> dict[str, int]:
    """Which parameter each state and weight is: the inputs of the call stand before them."""
    names = (*trace.call.states, *trace.call.weights)
    return {name: number for number, name in enumerate(names, input_count)}


def _metaneff(trace: RankedTrace, inputs: Sequence[torch.Tensor], module: HloModuleProto) -> MetaNeff:
    call, kinds = trace.call, MetaTensor.Type
    values = dict(zip((*call.weights, *call.states), trace.state_and_weight_shapes))
    given = [_meta(describe(value), kinds.USER_INPUT) for value in inputs]
    states = [_meta(values[name], kinds.INPUT_STATE, name) for name in call.states]
    weights = [_meta(values[name], kinds.INPUT_WEIGHT, name) for name in call.weights]
    made = [_meta(text, kinds.UNUSED) for text in call.result_shapes]
    next_values = [_meta(values[name], kinds.UNUSED) for name in call.states]
    aliases = {len(made) + number: len(given) + number for number in range(len(states))}
    parameters, results = [*given, *states, *weights], [*made, *next_values]
    return MetaNeff(parameters, results, aliases, module.SerializeToString())


def _meta(text: str, kind: int, name: str = "") -> MetaTensor:
    return MetaTensor([*shape_of(text)], text[: text.index("[")], kind, name.encode())


__getattr__ = names_of(__name__, "AWS's compiler works on files of its own there; use torch_neuronx.trace.")
