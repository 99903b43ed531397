"""Operators by the names that the device reports, and what their schemas say of them."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.errors import NeuronToolsError


class UnknownOperator(NeuronToolsError):
    """The device reported an operator that this PyTorch does not have."""


def resolve(name: str) -> Any:
    """The operator overload of a qualified name.

    Raises:
        UnknownOperator: There is no such operator.
    """
    qualified, _, overload = name.partition(".")
    namespace, _, base = qualified.partition("::")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    except AttributeError as error:
        message = (
            f"PyTorch {torch.__version__} has no operator {name}: is the module that defines it imported?"
        )
        raise UnknownOperator(message) from error


def writes_several_lists(target: Any) -> bool:
    """Whether an operator writes more than one list of tensors, in an order of its own."""
    written = [argument for argument in target._schema.arguments if argument.is_write]
    return len([argument for argument in written if "List" in str(argument.type)]) > 1


def can_fuse(name: str) -> bool:
    """Whether an operator can be part of a fused execution at all.

    Those that write tensors given by name (`out=`) may get other memory on the way, those that write several
    lists write them in an order of their own.

    Raises:
        UnknownOperator: There is no such operator.
    """
    target = resolve(name)
    by_name = any(each.is_write and each.kwarg_only for each in target._schema.arguments)
    return not (writes_several_lists(target) or by_name)
