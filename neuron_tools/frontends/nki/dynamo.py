"""Lets Dynamo take a kernel's call into the graph as one operator, as it does with Triton's kernels.

Dynamo's own tables are used for it, which PyTorch may change: where they are not as expected nothing is
installed, and a kernel ends the graph before it and runs on its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

from neuron_tools.frontends.nki.wrapper import KernelWrapper, wrap_nki
from neuron_tools.nki.kernel import Kernel


@functools.cache
def install() -> bool:
    """Teach Dynamo about kernels, once; whether this PyTorch's Dynamo can be taught."""
    try:
        from torch._dynamo.variables.builder import VariableBuilder

        kernel_variable = _variable_class()
        known = {Kernel: kernel_variable, KernelWrapper: _wrapper_class(kernel_variable)}
        for trace_numpy in (True, False):
            for kind, variable in known.items():
                VariableBuilder._type_dispatch_impl(trace_numpy)[kind] = _guarded(variable)
    except (ImportError, AttributeError, TypeError):
        return False
    return True


def _guarded(variable: Any) -> Callable[[Any, Any], Any]:
    """Builds the variable of an object that stays the same one as long as the graph is used."""
    from torch._dynamo.guards import GuardBuilder

    def wrap(builder: Any, value: Any) -> Any:
        builder.install_guards(GuardBuilder.ID_MATCH)
        return variable(value, source=builder.source)

    return wrap


def _wrapper_class(kernel_variable: Any) -> Any:
    from torch._dynamo.variables.base import VariableTracker

    class WrapperVariable(VariableTracker):
        """`wrap_nki` while Dynamo traces."""

        def __init__(self, wrapper: KernelWrapper, **options: Any) -> None:
            super().__init__(**options)

        def call_function(self, tx: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
            """The kernel of a function or of a kernel."""
            given = {name: value.as_python_constant() for name, value in kwargs.items()}
            return kernel_variable(wrap_nki(*(value.as_python_constant() for value in args), **given))

    return WrapperVariable


def _variable_class() -> Any:
    from torch._dynamo.exc import unimplemented
    from torch._dynamo.variables.base import VariableTracker

    class KernelVariable(VariableTracker):
        """A kernel while Dynamo traces."""

        def __init__(self, kernel: Kernel, **options: Any) -> None:
            super().__init__(**options)
            self.kernel = kernel

        def python_type(self) -> type:
            """What it stands for."""
            return Kernel

        def as_python_constant(self) -> Kernel:
            """The kernel itself."""
            return self.kernel

        def call_function(self, tx: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
            """One node of the graph."""
            try:
                return _Call(tx, self.kernel).variable(args, kwargs)
            except NotImplementedError as error:
                unimplemented(
                    gb_type="NKI kernel with an argument that is neither a tensor nor a constant",
                    context=f"{self.kernel.name}: {error}",
                    explanation="The kernel runs on its own, between two graphs.",
                    hints=[
                        "Give the kernel tensors, numbers, strings, types, and tuples or dataclasses of them."
                    ],
                )

        def mp_subscript_impl(self, tx: Any, key: Any) -> Any:
            """`kernel[grid]`."""
            return KernelVariable(self.kernel[key.as_python_constant()])

        def call_method(self, tx: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
            """`kernel.__getitem__(grid)` and `kernel.__call__(...)`."""
            if name == "__getitem__":
                return self.mp_subscript_impl(tx, args[0])
            if name == "__call__":
                return self.call_function(tx, args, kwargs)
            return super().call_method(tx, name, args, kwargs)

    return KernelVariable


class _Call:
    """A call whose arguments are Dynamo's variables."""

    def __init__(self, tx: Any, kernel: Kernel) -> None:
        self._tx = tx
        self._kernel = kernel
        self._tensors: list[Any] = []
        self._numbers: dict[int, int] = {}

    def variable(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What the call returns, as a variable."""
        from torch._dynamo.variables import ConstantVariable, ListVariable, TorchInGraphFunctionVariable

        from neuron_tools.frontends.nki.torch_forms import forms_of
        from neuron_tools.frontends.nki.torch_operator import kernel_operator
        from neuron_tools.nki.call import CALLS, KernelCall

        arguments = tuple(self._plain(value) for value in args)
        keywords = {name: self._plain(value) for name, value in kwargs.items()}
        call = KernelCall(self._kernel, arguments, keywords)
        form = call.form(forms_of([tensor.as_proxy().node.meta["example_value"] for tensor in self._tensors]))
        operator = TorchInGraphFunctionVariable(kernel_operator())
        inputs = [ConstantVariable.create(CALLS.number(call)), ListVariable(list(self._tensors))]
        made = operator.call_function(self._tx, inputs, {}).unpack_var_sequence(self._tx)
        for number, value in zip(form.written, made[len(form.results) :]):
            self._tensors[number].call_method(self._tx, "copy_", [value], {})
        return self._structure(form.structure, made)

    def _plain(self, variable: Any) -> Any:
        """An argument as the kernel gets it, tensors as numbered places."""
        from torch._dynamo import variables
        from torch._dynamo.variables.tensor import TensorVariable

        from neuron_tools.nki.call import Given

        variable = variable.realize()
        if isinstance(variable, TensorVariable):
            number = self._numbers.setdefault(id(variable), len(self._tensors))
            if number == len(self._tensors):
                self._tensors.append(variable)
            return Given(number)
        if isinstance(variable, variables.TupleVariable):
            return tuple(self._plain(item) for item in variable.items)
        if isinstance(variable, variables.ListVariable):
            return [self._plain(item) for item in variable.items]
        if isinstance(variable, variables.ConstDictVariable):
            return {key.vt.as_python_constant(): self._plain(item) for key, item in variable.items.items()}
        if isinstance(variable, variables.SymNodeVariable):
            return variable.evaluate_expr()
        if isinstance(variable, variables.UserDefinedObjectVariable) and is_dataclass(variable.python_type()):
            return self._record(variable)
        if type(getattr(variable, "value", None)).__module__.startswith("neuron_tools"):
            return variable.value
        return variable.as_python_constant()

    def _record(self, variable: Any) -> Any:
        """A dataclass, perhaps one that the traced code has just made: field by field."""
        kind = variable.python_type()
        record = object.__new__(kind)
        for name in kind.__dataclass_fields__:
            value = self._plain(variable.var_getattr(self._tx, name))
            object.__setattr__(record, name, value)
        return record

    def _structure(self, structure: Any, made: list[Any]) -> Any:
        from torch._dynamo import variables

        from neuron_tools.nki.call import Made

        if isinstance(structure, Made):
            return made[structure.number]
        if isinstance(structure, tuple):
            return variables.TupleVariable([self._structure(item, made) for item in structure])
        if isinstance(structure, list):
            return variables.ListVariable([self._structure(item, made) for item in structure])
        if isinstance(structure, dict):
            items = {
                variables.ConstantVariable.create(key): self._structure(item, made)
                for key, item in structure.items()
            }
            return variables.ConstDictVariable(items, dict)
        return variables.ConstantVariable.create(structure)
