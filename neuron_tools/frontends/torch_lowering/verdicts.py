"""What was learnt about operators that torch-mlir refused: decompose them further, or cut them out."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_lowering.decompositions import fallback_table
from neuron_tools.frontends.torch_lowering.fake import signature
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, operator_name, unlowered

UNTRIED = "untried"
"""Key of a node's `meta`: there was no verdict on such a call when the node was made."""
Verdict = Intrinsic | Callable[..., Any]


class Verdicts:
    """One verdict per operator and signature: a decomposition to try next, or an intrinsic.

    An operator may be refused for one shape and accepted for another, so nothing is concluded for others.
    """

    def __init__(self) -> None:
        self._verdicts: dict[Any, Verdict] = {}
        self._targets: set[Any] = set()

    def of(self, node: fx.Node) -> Verdict | None:
        """The verdict on a call, or None where it has never failed."""
        return self._verdicts.get(_key(node)) if node.target in self._targets else None

    def refuse(self, node: fx.Node, reason: str) -> bool:
        """Learn that a call could not be lowered: try PyTorch's decomposition, and then give up.

        Another call of its signature, in this graph or in another thread's, may have been refused since the
        node was made: then what was concluded from that is still to be tried.

        Returns:
            Whether the verdict on it has changed since the node was made.
        """
        key = _key(node)
        fallback = fallback_table().get(node.target)
        known = self._verdicts.get(key)
        if known is not None and node.meta.get(UNTRIED):
            return True
        if isinstance(known, Intrinsic):
            return False
        if fallback is not None and known is None:
            self._verdicts[key] = fallback
        else:
            self._verdicts[key] = unlowered(operator_name(node.target), reason, {"scalars": _scalars(node)})
        self._targets.add(node.target)
        return True


def refused_call(node: fx.Node) -> fx.Node:
    """The call that a failing node stands for: an element of a result is its producer's fault."""
    while node.target is operator.getitem and isinstance(node.args[0], fx.Node):
        node = node.args[0]
    return node


def _scalars(node: fx.Node) -> tuple[str, ...]:
    leaves = pytree.tree_leaves((node.args, node.kwargs))
    return tuple(repr(leaf) for leaf in leaves if not isinstance(leaf, fx.Node))


def _key(node: fx.Node) -> Any:
    leaves, structure = pytree.tree_flatten((tuple(node.args), dict(node.kwargs)))
    values = [leaf.meta["val"] if isinstance(leaf, fx.Node) else leaf for leaf in leaves]
    flat = [signature(value) for value in values if isinstance(value, torch.Tensor) or not _nested(value)]
    return (node.target, str(structure), tuple(flat))


def _nested(value: Any) -> bool:
    return isinstance(value, (tuple, list))


VERDICTS = Verdicts()
