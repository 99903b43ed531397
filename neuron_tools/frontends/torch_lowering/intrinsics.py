"""Graph nodes that torch-mlir does not see: they become one HLO operation of their own.

Three sorts: operators that the hardware does in one instruction but StableHLO spells as a polynomial
(`erf`, `gelu`: an `activation`, as the compiler's own passes make it), operators of
which somebody else knows what they become (`becomes`), and operators without any lowering, which become a
`custom_call` with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import torch
from torch import fx

from neuron_tools.frozen import frozen


@frozen
class Intrinsic:
    """What one cut-out node becomes.

    Attributes:
        opcode: HLO opcode, "activation" or "custom_call".
        attributes: Attributes of the operation; `call_target_name` names the function of a custom call.
        warning: A sentence for the user where no native lowering exists; empty otherwise.
    """

    opcode: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    warning: str = ""


_unlowered: set[str] = set()


def unlowered_operators() -> frozenset[str]:
    """Operators ("aten::median") that this process has found without a lowering so far."""
    return frozenset(_unlowered)


def unlowered(operator: str, reason: str, scalars: Mapping[str, Any] | None = None) -> Intrinsic:
    """The custom call that stands for an operator without a lowering.

    Args:
        operator: The operator's name, e.g. "aten::median".
        reason: Why, in a few words; becomes part of the warning.
        scalars: Arguments that are not tensors.
    """
    _unlowered.add(operator)
    attributes = {"call_target_name": operator, "unlowered": True, **(scalars or {})}
    return Intrinsic(
        "custom_call", attributes, f"{operator} has no native lowering ({reason}): timed as a custom call"
    )


# Functions of the Scalar engine's tables that torch-mlir spells as polynomials or does not know.
ACTIVATIONS: dict[str, str] = {
    "aten::erf": "erf",
    "aten::gelu": "gelu",
    "aten::erfinv": "erf_inv",
    "aten::lgamma": "lgamma",
    "aten::digamma": "digamma",
    "aten::polygamma": "polygamma",
}


_MAKERS: dict[str, Callable[[fx.Node], Intrinsic | None]] = {}


def becomes(operator: str, make: Callable[[fx.Node], Intrinsic | None]) -> None:
    """Let calls of an operator ("lib::name") become what `make` says of each; None: not this one."""
    _MAKERS[operator] = make


def intrinsic_of(node: fx.Node) -> Intrinsic | None:
    """What a call becomes that torch-mlir shall not see; None for others."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    make = _MAKERS.get(operator_name(node.target))
    return activation(operator_name(node.target)) if make is None else make(node)


def activation(operator: str) -> Intrinsic | None:
    """The intrinsic of an operator that is one activation function, or None."""
    function = ACTIVATIONS.get(operator)
    return None if function is None else Intrinsic("activation", {"function": function})


def operator_name(target: Any) -> str:
    """ "aten::add" for an overload, the function's name otherwise."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target._schema.name)
    return str(getattr(target, "__name__", target))


_NAMERS: dict[str, Callable[[fx.Node], str]] = {}


def named_by(operator: str, name: Callable[[fx.Node], str]) -> None:
    """Let calls of an operator ("lib::name") be shown under the names that `name` gives them."""
    _NAMERS[operator] = name


def call_name(node: fx.Node) -> str:
    """What to call a call of a graph: its operator, or what the operator does in this call."""
    name = operator_name(node.target)
    return _NAMERS[name](node) if name in _NAMERS else name
