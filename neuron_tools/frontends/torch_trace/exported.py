"""A model with example inputs as one flat graph of functional ATen operators: weights first, then inputs."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_lowering.intrinsics import operator_name
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.example_values import ByExample

_OWN_WARNING = r".*isinstance\(treespec, LeafSpec\)"
"""PyTorch warns of its own copies of an exported program."""


@dataclass(frozen=True)
class ExportedModel:
    """A model as a graph.

    Attributes:
        name: The model's class.
        graph_module: Placeholders for `weights`, then one per input tensor; returns a flat tuple.
        weights: What the first placeholders stand for: parameters, buffers and constants.
        weight_names: Their attribute paths.
        output_count: How many of the graph's last results are the model's.
        written: Attribute paths of the buffers whose new values are the results before them.
        structure: How the model's results are put together from the flat ones.
    """

    name: str
    graph_module: fx.GraphModule
    weights: tuple[torch.Tensor, ...]
    weight_names: tuple[str, ...]
    output_count: int
    structure: pytree.TreeSpec
    written: tuple[str, ...] = ()


class _Function(torch.nn.Module):
    """A plain function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Any) -> Any:
        return self._function(*args)


def as_module(function: Callable[..., Any]) -> torch.nn.Module:
    """The model itself, or a module around a function.

    Raises:
        TraceError: It is neither.
    """
    if not callable(function):
        raise TraceError(
            f"A {type(function).__name__} cannot be traced: pass a module, or a function of tensors."
        )
    return function if isinstance(function, torch.nn.Module) else _Function(function)


def on_host(model: torch.nn.Module) -> torch.nn.Module:
    """The model itself where it is on the CPU, else a copy there."""
    tensors = [*model.parameters(), *model.buffers()]
    if all(tensor.device.type == "cpu" for tensor in tensors):
        return model
    return copy.deepcopy(model).cpu()


def _name(model: torch.nn.Module) -> str:
    return "function" if isinstance(model, _Function) else type(model).__name__


def export_model(
    model: torch.nn.Module, inputs: Sequence[Any], name: str = "", *, by_example: bool = False
) -> ExportedModel:
    """Export a model for inference.

    Args:
        model: On the CPU.
        inputs: Example inputs; the graph is for their shapes and element types.
        name: What the model is called, where not by its class.
        by_example: Take the branch of the example inputs where control flow depends on values.

    Raises:
        TraceError: The model takes more or fewer inputs, its Python cannot be turned into a graph, or a shape
            in it depends on values.
    """
    name = name or _name(model)
    _check_count(model, inputs, name)
    try:
        answers = ByExample(inputs, name) if by_example else nullcontext()
        with torch.no_grad(), warnings.catch_warnings(), answers:
            warnings.filterwarnings("ignore", _OWN_WARNING, FutureWarning)
            program = torch.export.export(model, tuple(inputs), strict=False)
            _keep_origins(program.graph_module)
            program = program.run_decompositions({})
    except Exception as error:  # exporting runs the user's code and much of PyTorch's: anything may be raised
        reason = str(error).strip().split("\n")[0][:200]
        raise TraceError(
            f"{name} cannot be traced ({type(error).__name__}: {reason}): trace a module "
            "whose inputs and results are tensors and whose control flow does not depend on values."
        ) from error
    _refuse_dynamic_shapes(program.graph, name)
    specs = program.graph_signature.input_specs
    lifted = [spec for spec in specs if spec.kind != InputKind.USER_INPUT]
    tensors = {**program.state_dict, **program.constants}
    return ExportedModel(
        name=name,
        graph_module=program.graph_module,
        weights=tuple(tensors[str(spec.target)].detach() for spec in lifted),
        weight_names=tuple(str(spec.target) for spec in lifted),
        output_count=len(program.graph_signature.user_outputs),
        structure=program.call_spec.out_spec,
        written=tuple(program.graph_signature.buffers_to_mutate.values()),
    )


def _keep_origins(graph_module: fx.GraphModule) -> None:
    """Let what stands in a part of the graph keep its lines and modules when it is traced again.

    Exporting makes a part of each block with its own autocast or gradient mode; called as a module, its
    operations would come from generated code.
    """
    for part in graph_module.modules():
        if isinstance(part, fx.GraphModule) and part is not graph_module:
            part.forward = fx.Interpreter(part).run


def _check_count(model: torch.nn.Module, inputs: Sequence[Any], name: str) -> None:
    called = model._function if isinstance(model, _Function) else model.forward
    try:
        signature = inspect.signature(called)
    except ValueError:  # a function of PyTorch's own, which has none
        return
    try:
        signature.bind(*inputs)
    except TypeError as error:
        raise TraceError(
            f"{name} does not take {len(inputs)} example inputs ({error}): pass one for each argument."
        ) from error


def _refuse_dynamic_shapes(graph: fx.Graph, name: str) -> None:
    for node in graph.nodes:
        shapes = (leaf.shape for leaf in pytree.tree_leaves(node.meta.get("val")) if _is_tensor(leaf))
        if any(isinstance(extent, torch.SymInt) for shape in shapes for extent in shape):
            raise TraceError(
                f"{name} cannot be traced: the shape of what {operator_name(node.target)} makes depends on "
                "values, and a compiled model has fixed shapes; use torch.where or a mask of the full size."
            )


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor)
