"""Where an FX node came from: source frames, module path and class, forward or backward."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import fx

import neuron_tools
from neuron_tools.frontends.torch_lowering.intrinsics import call_name
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Frame, FrameworkOperation

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (.+)')
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+$")
_SOURCE = re.compile(r"^[LG]\['[^']*'\]")
_NOT_THE_USERS = (
    os.path.dirname(torch.__file__) + os.sep,
    os.path.dirname(neuron_tools.__file__) + os.sep,
)


@frozen
class ModuleRoot:
    """The module that paths of a graph are relative to.

    Attributes:
        source: Dynamo's name of the root, e.g. "L['self']"; empty where each path tells its own root.
        path: The root's path in the user's model, e.g. "GPT.blocks.0".
        class_name: Its class, e.g. "Block".
    """

    source: str = ""
    path: str = ""
    class_name: str = ""

    def locate(self, entry: tuple[str, Any], first: tuple[str, Any]) -> str:
        """Path of a module-stack entry; `first` is the outermost entry of its stack."""
        path = entry[0]
        if self.source and path.startswith(self.source):
            return self.path + path[len(self.source) :]
        root = _class_name(first[1])
        if not first[0]:  # torch.export names the outermost module ""
            return f"{root}.{path}" if path else root
        return root + path[len(first[0]) :] if path.startswith(first[0]) else _SOURCE.sub(root, path)


def framework_operation(node: fx.Node, root: ModuleRoot, backward: bool) -> FrameworkOperation:
    """The framework row of one call.

    Args:
        node: A `call_function` node of an AOTAutograd graph.
        root: What module paths are relative to.
        backward: Whether the graph is a backward graph.
    """
    origin = _origin(node)
    path, class_name = _module(origin, root)
    return FrameworkOperation(
        name=call_name(node),
        module_path=path,
        module_class=class_name,
        stack=frames(origin.meta.get("stack_trace") or ""),
        backward=backward or bool(origin.meta.get("autograd_backward")),
        recomputed=backward and origin.meta.get("partitioner_tag") == "is_forward",
        sequence=int(origin.meta.get("seq_nr", -1)),
    )


@lru_cache(maxsize=4096)
def frames(stack_trace: str) -> tuple[Frame, ...]:
    """Frames of a stack trace's text, innermost first, without PyTorch's and our own."""
    found = [Frame(file, int(line), _function(name)) for file, line, name in _FRAME.findall(stack_trace)]
    return tuple(frame for frame in reversed(found) if not frame.file.startswith(_NOT_THE_USERS))


def module_classes(node: fx.Node) -> tuple[str, ...]:
    """Names of the classes of the modules that a node belongs to, the model's first."""
    return tuple(_class_name(module_class) for _, module_class in _module_stack(_origin(node)))


def _module(node: fx.Node, root: ModuleRoot) -> tuple[str, str]:
    """Path and class of the module a node belongs to."""
    modules = _module_stack(node) or _module_stack_of_sum(node)
    if not modules:
        return root.path, root.class_name
    return root.locate(modules[-1], modules[0]), _class_name(modules[-1][1])


def _module_stack_of_sum(node: fx.Node) -> list[tuple[str, Any]]:
    """Autograd's sum of the gradients of one tensor belongs to the module around those that use the tensor.

    Its stack trace is that of the last of these users.
    """
    trace = frames(node.meta.get("stack_trace") or "")
    users = [other for other in node.all_input_nodes if frames(other.meta.get("stack_trace") or "") == trace]
    stacks = [stack for stack in map(_module_stack, users) if stack]
    return stacks[0][:-1] if node.meta.get("autograd_backward") and stacks else []


def _function(name: str) -> str:
    """Dynamo calls the rest of a function after a graph break `torch_dynamo_resume_in_NAME_at_LINE`."""
    resumed = _RESUMED.match(name.strip())
    return resumed.group(1) if resumed else name.strip()


def _origin(node: fx.Node) -> fx.Node:
    """The node itself, or where it has no source (AOTAutograd made it) the nearest one it works for."""
    if node.meta.get("stack_trace"):
        return node
    neighbours = [*reversed(node.all_input_nodes), *node.users]
    return next((other for other in neighbours if other.meta.get("stack_trace")), node)


def _module_stack(node: fx.Node) -> list[tuple[str, Any]]:
    stack: Mapping[Any, tuple[str, Any]] | None = node.meta.get("nn_module_stack")
    stack = stack or node.meta.get("fwd_nn_module_stack")
    return list(stack.values()) if stack else []


def _class_name(module_class: Any) -> str:
    """A class's own name; export passes classes as dotted strings."""
    return str(getattr(module_class, "__name__", module_class)).rsplit(".", 1)[-1]
