"""A graph of Dynamo's on `xla`: recorded as a graph of its own, with the lines of the traced functions."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from neuron_tools.device import native
from neuron_tools.frontends.torch_compile.compiled_graph import Callers, GraphDescription
from neuron_tools.frontends.torch_compile.provenance import ModuleRoot, framework_operation
from neuron_tools.frontends.torch_hooks.modules import current_module
from neuron_tools.frontends.torch_xla.execution import current_graph, eagerly, sync
from neuron_tools.frontends.torch_xla.metrics import METRICS
from neuron_tools.frontends.torch_xla.origin import Origin, told

_numbers = itertools.count()
_CALLS = ("call_function", "call_method", "call_module")


class TracedGraph:
    """What AOTAutograd calls; takes its arguments in a list that it empties."""

    def __init__(self, gm: fx.GraphModule, description: GraphDescription, callers: Callers) -> None:
        self._boxed_call = True  # AOTAutograd looks for it
        self._has_run = False
        self._gm, self._description, self._callers = gm, description, callers
        self._known = lru_cache(maxsize=256)(self._origins_below)

    @classmethod
    def of_module(cls, gm: fx.GraphModule) -> TracedGraph:
        """One that stands alone: of another origin than a pair that AOTAutograd made for `openxla`."""
        inputs = [node.name for node in gm.graph.nodes if node.op == "placeholder"]
        is_backward = any(name.startswith("tangents") for name in inputs)
        kind = "backward" if is_backward else "forward"
        kinds = ["input"] * len(inputs)
        model = type(gm).__name__
        name = f"{model}_{next(_numbers)}_{kind}"
        return cls(gm, GraphDescription(name, model, is_backward, ModuleRoot(), inputs, kinds), Callers())

    def __call__(self, args: list[Any]) -> Any:
        """Record what was traced and run it, as one execution, behind what was recorded before."""
        _warn_of_others(args)
        if not self._has_run:
            METRICS.count("DynamoExtractCompiledGraph")
            self._has_run = True
        if current_graph().operations:
            METRICS.count("DynamoSyncInputExecuteTime")
            sync()
        origins = self._known(self._callers.calling(self._description))
        given, taken = list(args), len(args)
        args.clear()
        with eagerly(False):
            with torch.no_grad(), native.paused_clock(), _disable_current_modes():
                results = _Recorder(self._gm, origins).run(*given)
            given.clear()
            sync(self._description.name)
        METRICS.add("RunCachedGraphInputData", taken)
        METRICS.add("RunCachedGraphOutputData", len(results))
        return results

    def _origins_below(self, root: ModuleRoot) -> Mapping[fx.Node, Origin]:
        return _origins(self._gm, root, self._description.backward)


def with_its_lines(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose operations are recorded with the lines that were traced, where it is a graph."""
    if not isinstance(function, fx.GraphModule):
        return function
    path, class_name = current_module()
    origins = _origins(function, ModuleRoot("L['self']", path, class_name), False)
    run: Callable[..., Any] = _Recorder(function, origins).run
    return run


def _origins(gm: fx.GraphModule, root: ModuleRoot, backward: bool) -> Mapping[fx.Node, Origin]:
    return {node: _origin(node, root, backward) for node in gm.graph.nodes if node.op in _CALLS}


def _origin(node: fx.Node, root: ModuleRoot, backward: bool) -> Origin:
    row = framework_operation(node, root, backward)
    return Origin(
        stack=row.stack,
        module_path=row.module_path,
        module_class=row.module_class,
        backward=row.backward,
        recomputed=row.recomputed,
        sequence=row.sequence,
    )


class _Recorder(fx.Interpreter):
    """Calls a graph's operators, each with the origin of its node."""

    def __init__(self, gm: fx.GraphModule, origins: Mapping[fx.Node, Origin]) -> None:
        super().__init__(gm)
        self._origins = origins

    def run_node(self, n: fx.Node) -> Any:
        """The node's value."""
        origin = self._origins.get(n)
        if origin is None:
            return super().run_node(n)
        with told(origin):
            return super().run_node(n)


def _warn_of_others(args: list[Any]) -> None:
    for each in args:
        if isinstance(each, torch.Tensor) and each.device.type != "xla":
            warnings.warn(
                f"Found tensor with shape {each.shape} on {each.device}. Move it to the device xla: a graph "
                "of the back end openxla runs there.",
                RuntimeWarning,
                stacklevel=3,
            )
