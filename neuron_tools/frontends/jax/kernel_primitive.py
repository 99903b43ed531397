"""The JAX primitive behind a kernel's call: its shapes from a trace, its values from a callback on the host.

In StableHLO it is a custom call that carries a number, by which `spliced` finds the kernel's own Program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from neuron_tools.compiler.hlo import Module, Operation, Region
from neuron_tools.compiler.ready_program import ATTRIBUTE
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.nki.ready import ready_program
from neuron_tools.nki.abstract import Form
from neuron_tools.nki.call import CALLS, CallForm
from neuron_tools.nki.dtypes import as_dtype

FRONTEND_ATTRIBUTES = "mhlo.frontend_attributes"
"""Attribute of StableHLO operations that is kept for front ends, through XLA too."""
KEY = "neuron_kernel"
_NUMBER = re.compile(KEY + r'\s*=\s*"(\d+)"')
_NARROWED = {"float64": "float32", "int64": "int32", "uint64": "uint32"}

_LOWERED: list[tuple[int, tuple[Form, ...]]] = []
"""Calls with the forms of their arrays, by the number that custom calls carry."""


class KernelGradientError(NeuronToolsError):
    """A kernel was differentiated that has no gradient."""


@cache
def kernel_primitive(kernel: str) -> Primitive:
    """The primitive of kernels of a name; its parameter `call` is the number of a `KernelCall`."""
    primitive = Primitive(f"nki::{kernel}")
    primitive.multiple_results = True
    primitive.def_impl(partial(_run, kernel))
    primitive.def_abstract_eval(_abstract)
    mlir.register_lowering(primitive, _lower)
    batching.primitive_batchers[primitive] = partial(_batched, primitive)
    ad.primitive_jvps[primitive] = partial(_refuse_gradient, kernel)
    return primitive


def bind(kernel: str, arrays: Sequence[Any], call: int) -> list[Any]:
    """The results of a call of a kernel, under whatever transformation is going on."""
    return bind_primitive(kernel_primitive(kernel), arrays, call)


def bind_primitive(primitive: Primitive, arrays: Sequence[Any], call: int) -> list[Any]:
    """The same of its primitive."""
    results: list[Any] = primitive.bind(*arrays, call=call)
    return results


def forms_of(arrays: Sequence[Any]) -> tuple[Form, ...]:
    """Shape and element type of each array as a kernel sees it."""
    return tuple((tuple(map(int, array.shape)), _kernel_type(array.dtype)) for array in arrays)


def spliced(module: Module) -> Module:
    """A module whose custom calls bring their kernels' Programs along."""
    return replace(module, operations=tuple(map(_with_program, module.operations)))


def _with_program(operation: Operation) -> Operation:
    if operation.regions:
        return replace(operation, regions=tuple(map(_region_with_programs, operation.regions)))
    marked = _NUMBER.search(str(operation.attributes.get(FRONTEND_ATTRIBUTES, "")))
    if marked is None:
        return operation
    number, forms = _LOWERED[int(marked[1])]
    call = CALLS[number]
    name = f"nki::{call.kernel.name}"
    ready = ready_program(call, forms)
    return replace(operation, attributes={"call_target_name": name, ATTRIBUTE: ready})


def _region_with_programs(region: Region) -> Region:
    return Region(region.parameters, tuple(map(_with_program, region.operations)), region.results)


# The primitive's rules


def _kernel_type(dtype: Any) -> str:
    name = np.dtype(dtype).name
    return str(as_dtype(_NARROWED.get(name, name)))


def _result_forms(form: CallForm, arrays: Sequence[Any]) -> list[tuple[tuple[int, ...], Any]]:
    made = [(shape, as_dtype(dtype).dtype) for shape, dtype in form.results]
    return made + [(tuple(arrays[n].shape), arrays[n].dtype) for n in form.written]


def _abstract(*arrays: Any, call: int) -> list[Any]:
    form = CALLS[call].form(forms_of(arrays))
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in _result_forms(form, arrays)]


@lru_cache(maxsize=1024)
def _jitted(kernel: str, call: int) -> Callable[..., Any]:
    def run(*arrays: Any) -> Any:
        return bind(kernel, arrays, call)

    run.__name__ = kernel
    return jax.jit(run)


def _run(kernel: str, *arrays: Any, call: int) -> Any:
    return _jitted(kernel, call)(*arrays)


def _lower(context: Any, *operands: Any, call: int) -> Any:
    """A call back to the host that computes the values, marked with the kernel's number."""
    forms = forms_of(context.avals_in)
    compute = partial(_values, call, CALLS[call].form(forms))
    results, *_ = mlir.emit_python_callback(
        context, compute, None, list(operands), context.avals_in, context.avals_out, has_side_effect=False
    )
    _mark(results[0], _lowered_number(call, forms))
    return results


def _lowered_number(call: int, forms: tuple[Form, ...]) -> int:
    if (call, forms) not in _LOWERED:
        _LOWERED.append((call, forms))
    return _LOWERED.index((call, forms))


def _mark(result: Any, number: int) -> None:
    from jaxlib.mlir import ir

    value = result[0] if isinstance(result, (list, tuple)) else result
    operation = value.owner
    attributes = ir.DictAttr.get({KEY: ir.StringAttr.get(str(number))})
    operation.attributes[FRONTEND_ATTRIBUTES] = attributes


def _values(call: int, form: CallForm, *arrays: Any) -> list[Any]:
    """Values of a call; NumPy arrays in and out."""
    own = [_own_type(np.asarray(array), n in form.written) for n, array in enumerate(arrays)]
    made = CALLS[call].compute(own)
    written = [own[n].astype(np.asarray(arrays[n]).dtype, copy=False) for n in form.written]
    return [*made, *written]


def _own_type(array: Any, written: bool) -> Any:
    wanted = as_dtype(_kernel_type(array.dtype)).dtype
    return np.array(array, wanted) if written else np.ascontiguousarray(array, wanted)


def _batched(primitive: Primitive, arrays: Sequence[Any], axes: Sequence[Any], *, call: int) -> Any:
    """One element of the batch after the other, as a kernel's tiles have no place for another axis."""
    moved = [
        array if axis is None else jax.numpy.moveaxis(array, axis, 0) for array, axis in zip(arrays, axes)
    ]
    batched = [array for array, axis in zip(moved, axes) if axis is not None]

    def one(parts: Sequence[Any]) -> Any:
        each = iter(parts)
        given = [array if axis is None else next(each) for array, axis in zip(moved, axes)]
        return bind_primitive(primitive, given, call)

    results = jax.lax.map(one, batched)
    return results, [0] * len(results)


def _refuse_gradient(kernel: str, *_: Any, **__: Any) -> Any:
    raise KernelGradientError(
        f"The NKI kernel {kernel!r} has no gradient: put its call into a function with jax.custom_vjp, and "
        "give that function a backward kernel or formula."
    )
