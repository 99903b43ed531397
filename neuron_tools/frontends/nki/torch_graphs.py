"""Kernels in compiled PyTorch graphs: a call becomes a custom call that brings its Program along."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch import fx

from neuron_tools.compiler.ready_program import ATTRIBUTE
from neuron_tools.frontends.nki.ready import ready_program
from neuron_tools.frontends.nki.torch_forms import NAME, NAMESPACE, forms_of
from neuron_tools.frontends.torch_lowering.decompositions import replacement_of
from neuron_tools.frontends.torch_lowering.decompositions.registry import replaces
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes, named_by, operator_name
from neuron_tools.nki.call import CALLS


def lower_kernels() -> None:
    """Let the lowering of graphs know the operator of kernel calls."""
    becomes(f"{NAMESPACE}::{NAME}", kernel_intrinsic)
    named_by(f"{NAMESPACE}::{NAME}", _kernel_name)
    named_by("auto_functionalized_v2", _functional_name)
    replaces(torch.ops.higher_order.auto_functionalized_v2)(_functional_call)
    _take_arguments_named_mode()


def lower_as_body(name: str, body: Callable[..., Any]) -> None:
    """Let calls of an operator that calls kernels be lowered as what its function does."""
    replaces(name)(body)


def kernel_intrinsic(node: fx.Node) -> Intrinsic:
    """The custom call of a node that calls a kernel."""
    number: Any = node.args[0]
    inputs: Any = node.args[1]
    call = CALLS[number]
    ready = ready_program(call, forms_of([tensor.meta["val"] for tensor in inputs]))
    operands = {tensor: place for place, tensor in enumerate(node.all_input_nodes)}
    placed = tuple((row, operands[inputs[place]]) for row, place in ready.operands)
    attributes = {"call_target_name": f"nki::{call.kernel.name}", ATTRIBUTE: ready.given(placed)}
    return Intrinsic("custom_call", attributes)


def _take_arguments_named_mode() -> None:
    """Let operators that write an argument have one called `mode`.

    PyTorch passes their arguments by name, behind a mode of its own, to handlers that call that one `mode`.
    """
    handlers = torch.ops.higher_order.auto_functionalized_v2.python_key_table
    for kind, handler in handlers.items():
        if isinstance(handler, FunctionType) and not handler.__code__.co_posonlyargcount:
            code = handler.__code__.replace(co_posonlyargcount=1)
            handlers[kind] = FunctionType(
                code, handler.__globals__, handler.__name__, handler.__defaults__, handler.__closure__
            )


def _kernel_name(node: fx.Node) -> str:
    number: Any = node.args[0]
    return f"nki::{CALLS[number].kernel.name}"


def _functional_name(node: fx.Node) -> str:
    return operator_name(node.args[0])


def _functional_call(operator: Any, _only_clone_these_bases: Any = None, **arguments: Any) -> Any:
    """An operator that writes its arguments, on copies of them: its results, then the copies."""
    from torch._higher_order_ops import auto_functionalize

    bases = arguments.pop("_all_bases", [])
    cloned = tuple(range(len(bases))) if _only_clone_these_bases is None else _only_clone_these_bases
    given, copies = auto_functionalize._generate_new_op_kwargs_from_bases(
        operator._schema, arguments, bases, cloned, False
    )
    made = (replacement_of(operator) or operator)(**given)
    return (*made, *copies) if isinstance(made, tuple) else (made, *copies)
