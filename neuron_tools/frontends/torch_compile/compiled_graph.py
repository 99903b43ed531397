"""A compiled graph: computes its values operator by operator, is timed and recorded as one execution."""

from __future__ import annotations

import copy
import itertools
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.fx.graph import _BoxedCodeGen

from neuron_tools.compiler.hlo import Module
from neuron_tools.device import native
from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_compile import graph_metrics
from neuron_tools.frontends.torch_compile.foreseen_layout import keep_foreseen_layouts
from neuron_tools.frontends.torch_compile.graph_lowering import framework_rows, lower_graph
from neuron_tools.frontends.torch_compile.provenance import ModuleRoot
from neuron_tools.frontends.torch_hooks.modules import current_path
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frozen import frozen
from neuron_tools.records.program import FrameworkOperation


@frozen
class GraphDescription:
    """What is known of a graph besides its nodes.

    Attributes:
        name: Name of the executable.
        model: What graphs of the same model have in common in their names.
        backward: Whether it is a backward graph.
        root: Module that its module paths are relative to.
        parameter_names: One per placeholder.
        parameter_kinds: "input" or "weight", one per placeholder.
    """

    name: str
    model: str
    backward: bool
    root: ModuleRoot
    parameter_names: Sequence[str]
    parameter_kinds: Sequence[str]


class Callers:
    """The modules that ran the forward graphs of a pair, whose backward graphs are still to run."""

    def __init__(self) -> None:
        self._paths: deque[str] = deque(maxlen=1024)

    def calling(self, description: GraphDescription) -> ModuleRoot:
        """The module that runs a graph now; a backward run undoes the last forward run.

        A graph of a plain function belongs to the module that is being called around it.

        Args:
            description: Of the graph.
        """
        root = description.root
        if description.backward:
            path = self._paths.pop() if self._paths else root.path
        else:
            path = current_path() or root.path
            self._paths.append(path)
        return replace(root, path=path)


_numbers = itertools.count()


class CompiledGraph:
    """What AOTAutograd calls; takes its arguments in a list that it empties.

    One graph may serve several modules (the blocks of a model) and, with symbolic sizes, several shapes: each
    pair gets an executable of its own. Those of one shape have the same code, which is compiled once.
    """

    def __init__(self, gm: fx.GraphModule, description: GraphDescription, callers: Callers) -> None:
        self._number = next(_numbers)  # a graph may go, and another one come to lie where it was
        self._boxed_call = True  # AOTAutograd looks for it, also on the wrapper that Dynamo puts around this
        self._description = description
        self._callers = callers
        # What torch.profiler shows of a call is the same in a capture and outside.
        self._begin, self._record = (
            native.unseen(self._begin_execution),
            native.unseen(self._record_execution),
        )
        self._end = native.unseen(_end_execution)
        self._graph = gm.graph
        self._metrics = graph_metrics.made(
            gm.graph, number=self._number, name=description.name, model_name=description.model
        )
        self._placeholders = [node for node in self._graph.nodes if node.op == "placeholder"]
        self._dynamic = any(_is_symbolic(node.meta.get("val")) for node in self._placeholders)
        running = copy.deepcopy(gm.graph)  # that of `gm` is lowered as it is
        keep_foreseen_layouts(running)
        running.set_codegen(_BoxedCodeGen())
        self._gm = fx.GraphModule(gm, running)

    def __call__(self, args: list[Any], caller: ModuleRoot | None = None) -> Any:
        """Run on `args`: tensors and, in dynamic graphs, sizes; for `caller`, or the module that runs it."""
        provider = executables.current()
        begun = None if provider is None else self._begin(provider, args, caller)
        if begun is None:
            return self._gm.forward(args)
        executable, duration_ns, was_suppressed = begun
        try:
            result = self._gm.forward(args)
        finally:
            self._end(was_suppressed)
        self._record(executable, duration_ns)
        return result

    def _begin_execution(
        self, provider: executables.ExecutableProvider, args: Sequence[Any], caller: ModuleRoot | None
    ) -> tuple[int, int, bool] | None:
        """The executable, its device time in ns, and whether the thread recorded nothing before.

        None where nothing is on the device. Else no operator is recorded until `_end`, and the clock stands:
        compiling, simulating and computing the values is this machine's time, not the user's host's.
        """
        if not _on_device(args):
            return None
        root = caller or self._callers.calling(self._description)
        example = [_stored(argument) for argument in args]
        sizes: Hashable = (self._number, tuple(example) if self._dynamic else ())
        shared = executables.SharedCode(sizes, lambda: self._framework(root))
        lowering = graph_metrics.TimedLowering(lambda: self.lower(example, root), self._metrics)
        native.pause_clock()
        try:
            executable, duration_ns = provider.executable_for(
                lowering, (sizes, root.path), self._description.name, shared
            )
            lowering.compiled()
        except BaseException:
            native.resume_clock()
            raise
        return executable, duration_ns, native.suppress(True)

    def _record_execution(self, executable: int, duration_ns: int) -> None:
        name = self._description.name
        native.run_graph(executable, duration_ns, native.intern_name(name))

    def lower(self, arguments: Sequence[Any], root: ModuleRoot | None = None) -> Module:
        """The module for arguments of these shapes (`StoredTensor` or numbers) called by `root`."""
        description = self._description
        return lower_graph(
            self._graph,
            arguments,
            description.name,
            root=root or description.root,
            backward=description.backward,
            parameter_kinds=description.parameter_kinds,
            parameter_names=description.parameter_names,
        )

    def _framework(self, root: ModuleRoot) -> list[FrameworkOperation]:
        return framework_rows(self._graph, root, self._description.backward)


def _end_execution(was_suppressed: bool) -> None:
    native.suppress(was_suppressed)
    native.resume_clock()


def _stored(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return StoredTensor.of(argument)
    return argument


def _on_device(args: Sequence[Any]) -> bool:
    return any(isinstance(argument, torch.Tensor) and argument.device.type == "neuron" for argument in args)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(extent, torch.SymInt) for extent in value.shape)
    return isinstance(value, (torch.SymInt, torch.SymFloat, int))
