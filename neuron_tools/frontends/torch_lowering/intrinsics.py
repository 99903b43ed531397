"""Graph nodes that torch-mlir does not see: they become one HLO operation of their own.

Two sorts: operators that the hardware does in one instruction but StableHLO spells as a polynomial
(`erf`, `gelu`: an `activation`, as the compiler's own passes make it), and operators without any lowering,
which become a `custom_call` with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
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


def unlowered(operator: str, reason: str, scalars: Mapping[str, Any] | None = None) -> Intrinsic:
    """The custom call that stands for an operator without a lowering.

    Args:
        operator: The operator's name, e.g. "aten::median".
        reason: Why, in a few words; becomes part of the warning.
        scalars: Arguments that are not tensors.
    """
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


def activation(operator: str) -> Intrinsic | None:
    """The intrinsic of an operator that is one activation function, or None."""
    function = ACTIVATIONS.get(operator)
    return None if function is None else Intrinsic("activation", {"function": function})


def operator_name(target: Any) -> str:
    """ "aten::add" for an overload, the function's name otherwise."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target._schema.name)
    return str(getattr(target, "__name__", target))
