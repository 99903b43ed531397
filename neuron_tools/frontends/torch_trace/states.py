"""States of a traced model: parameters whose next values are among its results, such as a key-value cache.

They are kept from call to call and stay on the device. The model returns them in the places of their next
values, where AWS's T5 tutorial and optimum-neuron expect them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.exported import ExportedModel
from neuron_tools.frontends.torch_trace.shapes import describe
from neuron_tools.frozen import frozen


@frozen
class States:
    """Which placeholders of a graph are states.

    Attributes:
        results: Position of each state's placeholder -> which result of the model is its next value.
    """

    results: Mapping[int, int]

    def kept_by(self, graph: fx.Graph, segment: fx.Node, output_count: int) -> dict[int, int]:
        """States that a segment both takes and gives: position among its arguments -> which of its results.

        Args:
            graph: The model's, cut into segments.
            segment: The call of one.
            output_count: How many of the graph's last results are the model's.
        """
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        outputs = _outputs(graph)[-output_count:]
        kept = {}
        for position, number in self.results.items():
            made, source = outputs[number], placeholders[position]
            if source in segment.args and _made_by(made, segment) and outputs.count(made) == 1:
                kept[segment.args.index(source)] = _number_of(made)
        return kept

    def left_to(self, graph: fx.Graph, output_count: int) -> dict[int, int]:
        """States whose next value no segment keeps: position -> result; those that never change are none."""
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        outputs = _outputs(graph)[-output_count:]
        calls = [node for node in graph.nodes if node.op == "call_module"]
        left = {}
        for position, number in self.results.items():
            source, made = placeholders[position], outputs[number]
            keeper = [call for call in calls if source in call.args and _made_by(made, call)]
            if made is not source and not (keeper and outputs.count(made) == 1):
                left[position] = number
        return left


def find_states(
    model: torch.nn.Module, exported: ExportedModel, aliases: Mapping[torch.Tensor, int]
) -> States:
    """The states among a model's weights.

    Args:
        model: As it was given.
        exported: The same as a graph.
        aliases: Parameter or buffer -> which of the model's results, counted flat, is its next value.

    Raises:
        TraceError: A tensor is none of the model's, or no result can be its next value.
    """
    named = chain(model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False))
    names = {id(tensor): name for name, tensor in named if name in exported.weight_names}
    results = _outputs(exported.graph_module.graph)[-exported.output_count :]
    states = checked_aliases(exported.name, names, results, aliases)
    return States({exported.weight_names.index(name): number for name, number in states.items()})


def checked_aliases(
    model: str, names: Mapping[int, str], results: Sequence[Any], aliases: Mapping[torch.Tensor, int]
) -> dict[str, int]:
    """States by their names, where each can have its next value.

    Args:
        model: Name of the model.
        names: Of its parameters and buffers, by their `id`.
        results: What a graph returns for the model's results, counted flat.
        aliases: Parameter or buffer -> which of the results is its next value.

    Returns:
        Name of each state -> which of the results is its next value.

    Raises:
        TraceError: A tensor is none of the model's, there is no such result, or it has another shape or
            element type than the state.
    """
    for state, number in aliases.items():
        _check_alias(model, names.get(id(state)), state, number, results)
    return {names[id(state)]: number for state, number in aliases.items()}


def _check_alias(
    model: str, name: str | None, state: torch.Tensor, number: int, results: Sequence[Any]
) -> None:
    if name is None:
        raise TraceError(
            f"The state for result {number} of {model} is no parameter and no buffer of the model: "
            "register it in the module, and pass that tensor in input_output_aliases."
        )
    if not 0 <= number < len(results):
        raise TraceError(
            f"{model} has {len(results)} results and no number {number}: "
            "input_output_aliases gives for each state which result is its next value, counted from 0."
        )
    made = results[number]
    found = describe(made.meta["val"]) if isinstance(made, fx.Node) else "no tensor"
    if found != describe(state):
        raise TraceError(
            f"Result {number} of {model} is {found} and cannot be the next value of the state {name}, which "
            f"is {describe(state)}: pass the number of a result of that element type and shape in "
            "input_output_aliases."
        )


def _outputs(graph: fx.Graph) -> list[Any]:
    output = next(node for node in reversed(graph.nodes) if node.op == "output")
    return list(output.args[0])


def _made_by(made: Any, segment: fx.Node) -> bool:
    """Whether a result is one of a segment's, which nothing but the model's caller gets."""
    if not isinstance(made, fx.Node) or any(user.op != "output" for user in made.users):
        return False
    return made is segment or (made.op == "call_function" and made.args[0] is segment)


def _number_of(made: fx.Node) -> int:
    return 0 if made.op == "call_module" else int(made.args[1])
