"""What Python asks of a tensor while a model is traced, answered as PyTorch/XLA does: from example inputs.

There a tensor that is being traced has a value: `if tensor:` takes the branch of the example inputs, and
`copy.deepcopy(tensor)` copies it.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

_KNOWN = ("aten", "prims")
"""Namespaces of operators whose values follow from their arguments."""


class ByExample(TorchFunctionMode):
    """Answers while a model is exported.

    Args:
        inputs: Example inputs.
        name: What the model is called.
    """

    def __init__(self, inputs: Sequence[Any], name: str) -> None:
        super().__init__()
        self._inputs = [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
        self._name = name
        self._known: dict[fx.Node, Any] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call a function of PyTorch, or answer."""
        if args and isinstance(args[0], (FakeTensor, FunctionalTensor)):
            if func is torch.Tensor.__deepcopy__:
                return _copy(*args)
            if func is torch.Tensor.__bool__ and (answer := self._is_true(args[0])) is not None:
                self._warn()
                return answer
        return func(*args, **(kwargs or {}))

    def _warn(self) -> None:
        warnings.warn(
            f"{self._name} asks for a tensor's value: its trace takes the branch of the example inputs.",
            torch.jit.TracerWarning,
            stacklevel=4,
        )

    def _is_true(self, tensor: torch.Tensor) -> bool | None:
        """Whether a tensor is true for the example inputs; None where more than these decides it."""
        mode = get_proxy_mode()
        made = tensor.from_functional() if isinstance(tensor, FunctionalTensor) else tensor
        slot = get_proxy_slot(made, mode.tracer, None) if mode is not None else None
        if mode is None or slot is None:
            return None
        node = slot.proxy.node
        placeholders = [each for each in node.graph.nodes if each.op == "placeholder"]
        self._known.update(zip(placeholders[-len(self._inputs) :], self._inputs))
        with _disable_current_modes():
            for each in _needed(node, self._known):
                if not _follows(each):
                    return None
                self._known[each] = _evaluated(each, self._known, mode.tracer.root)
            return bool(self._known[node])


def _copy(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    return memo.setdefault(id(tensor), tensor.clone())


def _needed(node: fx.Node, known: Mapping[fx.Node, Any]) -> list[fx.Node]:
    """The nodes that a node's value needs and that have none yet, in the graph's order."""
    found, waiting = set[fx.Node](), [node]
    while waiting:
        each = waiting.pop()
        if each not in known and each not in found:
            found.add(each)
            waiting += each.all_input_nodes
    return [each for each in node.graph.nodes if each in found]


def _follows(node: fx.Node) -> bool:
    """Whether a value follows from its arguments: weights, collectives and random numbers are not known."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target.namespace in _KNOWN and torch.Tag.nondeterministic_seeded not in target.tags
    return node.op == "get_attr" or target is operator.getitem


def _evaluated(node: fx.Node, known: Mapping[fx.Node, Any], root: torch.nn.Module) -> Any:
    if node.op == "get_attr":
        return operator.attrgetter(str(node.target))(root)
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
    target: Any = node.target
    return target(*args, **kwargs)
