"""What happens to each operation on `xla`: it is recorded or, where its values decide, run at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.device import native
from neuron_tools.frontends.torch_xla import attention, collectives, manual, precision, spread
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.execution import current_graph, is_eager, sync
from neuron_tools.frontends.torch_xla.graph import ValueNumber
from neuron_tools.frontends.torch_xla.metrics import METRICS
from neuron_tools.frontends.torch_xla.origin import current_origin
from neuron_tools.frontends.torch_xla.tensor import LazyValue, XlaTensor, neuron_device

_aten = torch.ops.aten
_ALIASES = {_aten.detach.default, _aten.alias.default, _aten.lift_fresh.default}
_COPIES = {_aten._copy_from.default, _aten._copy_from_and_resize.default}
_LOOKS = {
    _aten._local_scalar_dense.default, _aten.equal.default, _aten.is_nonzero.default,
    _aten._ctc_loss_backward.default, _aten._ctc_loss_backward.Tensor,
}  # fmt: skip
"""Operators that PyTorch/XLA does on the host, beside those that PyTorch tags so; CTC's loss is of these."""
_TAKES_HOST_INDICES = {
    _aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default, _aten._index_put_impl_.default,
    _aten._unsafe_index.Tensor, _aten._unsafe_index_put.default,
}  # fmt: skip
_COLLECTIVES = ("c10d", "_c10d_functional")
_WHOLE = {_aten.scaled_dot_product_attention.default: attention.scaled_dot_product_attention}
Leaves = list[Any]


def dispatch(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Do one operation.

    Args:
        func: Operator overload.
        args: Its arguments; at least one is an `XlaTensor`, or a device argument is `xla`.
        kwargs: Likewise, by name.

    Raises:
        XlaError: Tensors of other devices are among the arguments.
    """
    if _is_composite(func):  # in inference mode nothing above takes it apart
        return _WHOLE.get(func, func.decompose)(*args, **kwargs)
    if func in _ALIASES:
        return XlaTensor(args[0].lazy, args[0].dtype)
    if func is _aten._to_copy.default:
        return _to_copy(args[0], **kwargs)
    if func is _aten.copy_.default:
        return _copy(args[0], args[1], *args[2:], **kwargs)
    if func is _aten.view.default:
        return _view(args[0], args[1])
    if func in _COPIES:
        return _copy(args[1], args[0])
    if func.namespace in _COLLECTIVES:
        return _collective(func, args, kwargs)
    if _has_mask(args[1]) if func is _aten.index.Tensor else _needs_values(func):
        return _with_values(func, args, kwargs)
    return record(func, args, kwargs)


def record(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Compute an operation's values beside the program's clock, and add it to the graph."""
    METRICS.count(_counter(func))
    leaves, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
    _refuse_others(func, leaves)
    with native.unrecorded(), spread.whole_values():
        origin = current_origin()
        graph = current_graph()
        leaves = manual.brought_in(func, leaves, structure)
        before = {id(leaf.lazy.inner): leaf for leaf in leaves if isinstance(leaf, XlaTensor)}
        numbered = [_numbered(leaf) for leaf in leaves]
        computed = _compute(func, leaves, structure)
        made, made_structure = pytree.tree_flatten(computed)
        others = [
            pytree.tree_leaves(_compute(func, leaves, structure, core)) for core in _other_cores(leaves)
        ]
        dtypes = [_seen(leaf) for leaf in leaves if isinstance(leaf, (XlaTensor, torch.dtype))]
        results = [_result(values, before, dtypes) for values in zip(made, *others)]
        lazies = [_new_lazy(result, before) for result in results]
        graph.add(func, numbered, structure, lazies, origin)
        for tensor in before.values():
            _follow_shape(tensor)
    if is_eager():
        sync()
    return pytree.tree_unflatten(results, made_structure)


@cache
def _counter(func: Any) -> str:
    """The counter of an operator that is recorded: "xla::add"."""
    return f"xla::{func._schema.name.split('::')[-1]}"


def _view(tensor: XlaTensor, size: Sequence[int]) -> Any:
    """A view; of a copy where strides cannot express it, as tensors of PyTorch/XLA have none."""
    if not _has_view(tensor.lazy.inner, size):
        tensor = record(_aten.clone.default, (tensor,), {"memory_format": torch.contiguous_format})
    return record(_aten.view.default, (tensor, size), {})


def _has_view(inner: torch.Tensor, size: Sequence[int]) -> bool:
    if inner.is_contiguous():
        return True
    try:
        torch.empty_strided(inner.shape, inner.stride(), dtype=inner.dtype, device="meta").view(size)
    except RuntimeError:
        return False
    return True


def _compute(func: Any, leaves: Leaves, structure: pytree.TreeSpec, core: int = 0) -> Any:
    args, kwargs = pytree.tree_unflatten([_inner(leaf, core) for leaf in leaves], structure)
    return collectives.finished(func, func(*args, **kwargs))


def _other_cores(leaves: Leaves) -> range:
    """The cores behind the first one, where each has values of its own."""
    counts = [len(leaf.lazy.by_core or ()) for leaf in leaves if isinstance(leaf, XlaTensor)]
    return range(1, max(counts, default=0))


def _inner(leaf: Any, core: int = 0) -> Any:
    if isinstance(leaf, XlaTensor):
        return leaf.lazy.on(core)
    if isinstance(leaf, torch.device) and leaf.type == "xla":
        return neuron_device()
    return precision.on_device(leaf) if isinstance(leaf, torch.dtype) else leaf


def _numbered(leaf: Any) -> Any:
    if isinstance(leaf, XlaTensor):
        return ValueNumber(current_graph().number_of(leaf.lazy, leaf))
    if isinstance(leaf, torch.Tensor):  # a number on the host, which becomes data of the device
        return ValueNumber(current_graph().number_of(LazyValue(leaf)))
    return torch.device("cpu") if isinstance(leaf, torch.device) else _inner(leaf)


def _seen(leaf: Any) -> torch.dtype:
    return leaf if isinstance(leaf, torch.dtype) else leaf.dtype


def _result(values: Sequence[Any], before: Mapping[int, XlaTensor], dtypes: Sequence[torch.dtype]) -> Any:
    """The result of which these are the values: one of all cores, or one of each."""
    value = values[0]
    if not isinstance(value, torch.Tensor):
        return value
    if id(value) in before:
        return before[id(value)]
    lazy = LazyValue(value) if len(values) == 1 else LazyValue.of_cores(values)
    return XlaTensor(lazy, precision.in_program(value.dtype, dtypes))


def _new_lazy(result: Any, before: Mapping[int, XlaTensor]) -> LazyValue | None:
    if not isinstance(result, XlaTensor) or id(result.lazy.inner) in before:
        return None
    return result.lazy


def _follow_shape(tensor: XlaTensor) -> None:
    """An operator that writes may have given its argument another shape."""
    inner = tensor.lazy.inner
    if tensor.shape != inner.shape or tensor.stride() != inner.stride():
        torch.Tensor.data.__set__(tensor, XlaTensor(tensor.lazy, tensor.dtype))


def _refuse_others(func: Any, leaves: Leaves) -> None:
    """Numbers on the host become data; other tensors of the host must be moved by the program."""
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, XlaTensor) or not isinstance(leaf, torch.Tensor):
            continue
        if leaf.device.type == "cpu" and leaf.dim() == 0:
            continue
        if leaf.device.type == "cpu" and _takes_tensors_of_the_host(func):
            leaves[position] = from_host(leaf)
            continue
        raise XlaError(
            f"{func.name()} got a tensor of shape {list(leaf.shape)} on {leaf.device} beside one on xla: "
            "move it with .to(xm.xla_device()) first."
        )


@cache
def _takes_tensors_of_the_host(func: Any) -> bool:
    """Whether PyTorch/XLA moves tensors of the host by itself: indices, and operands of elementwise ones."""
    return func in _TAKES_HOST_INDICES or (torch.Tag.pointwise in func.tags and not func._schema.is_mutable)


@cache
def _is_composite(func: Any) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


@cache
def _needs_values(func: Any) -> bool:
    tags = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
    return func in _LOOKS or any(tag in func.tags for tag in tags)


def _has_mask(indices: Sequence[torch.Tensor | None]) -> bool:
    """Whether values decide how many elements are chosen."""
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices)


def _with_values(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run what was recorded, and do the operation on the host; tensors that it makes go back."""
    METRICS.count(func.name().split(".")[0])
    sync()
    host_args, host_kwargs = pytree.tree_map(to_host, (tuple(args), dict(kwargs)))
    result = func(*host_args, **host_kwargs)
    return pytree.tree_map(
        lambda value: from_host(value) if isinstance(value, torch.Tensor) else value, result
    )


def _collective(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Record a collective; the ranks meet between two graphs for one that no graph has."""
    if collectives.is_recorded(func):
        return record(func, args, kwargs)
    form = collectives.recorded_form(func, args)
    if form is not None:
        return form(args, kwargs)
    sync()
    leaves, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
    before = {id(leaf.lazy.inner): leaf for leaf in leaves if isinstance(leaf, XlaTensor)}
    inner_args, inner_kwargs = pytree.tree_unflatten([_inner(leaf) for leaf in leaves], structure)
    made = func(*inner_args, **inner_kwargs)
    dtypes = [tensor.dtype for tensor in before.values()]
    return pytree.tree_map(lambda value: _result((value,), before, dtypes), made)


def to_host(value: Any) -> Any:
    """A tensor's values on the CPU, once the device has them; what is no tensor of ours as it is."""
    if not isinstance(value, XlaTensor):
        return value
    manual.refuse_to_look(value)
    sync()
    METRICS.count("TransferFromDevice")
    METRICS.add("InboundData", value.lazy.inner.nbytes)
    return spread.read(value.lazy).to(value.dtype)


def from_host(value: torch.Tensor, non_blocking: bool = False) -> XlaTensor:
    """A tensor of the CPU on the device."""
    METRICS.count("TransferToDevice")
    narrowed = value.detach().to(precision.on_device(value.dtype))
    METRICS.add("OutboundData", narrowed.nbytes)
    if not spread.is_spread():
        return XlaTensor(LazyValue(narrowed.to(neuron_device(), non_blocking=non_blocking)), value.dtype)
    with native.unrecorded(), native.uncounted_memory():  # the graph that needs it copies its parts
        return XlaTensor(LazyValue(narrowed.to(neuron_device())), value.dtype)


def _to_copy(tensor: torch.Tensor, **options: Any) -> torch.Tensor:
    device = torch.device(options.get("device") or tensor.device)
    if isinstance(tensor, XlaTensor) and device.type == "xla":
        kept = {name: value for name, value in options.items() if name not in ("device", "non_blocking")}
        return record(_aten._to_copy.default, (tensor,), kept)
    dtype = options.get("dtype") or tensor.dtype
    if isinstance(tensor, XlaTensor):
        copied: torch.Tensor = to_host(tensor).to(device, dtype)
        return copied
    return from_host(tensor.to("cpu", dtype), bool(options.get("non_blocking")))


def _copy(destination: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    if not isinstance(destination, XlaTensor):
        return destination.copy_(to_host(source))
    if isinstance(source, XlaTensor):
        record(_aten.copy_.default, (destination, source), {})
    elif _is_fresh(destination) and destination.shape == source.shape:
        _fill_from_host(destination, source, non_blocking)
    else:
        moved = from_host(source.to("cpu", destination.dtype), non_blocking)
        record(_aten.copy_.default, (destination, moved), {})
    return destination


def _is_fresh(tensor: XlaTensor) -> bool:
    """Whether a tensor is the last operation's result without values: `to` makes one, then copies into it."""
    operations = current_graph().operations
    if tensor.lazy.graph != current_graph().serial or not operations:
        return False
    last = operations[-1]
    return last.target in _EMPTY and tensor.lazy.number in last.results


_EMPTY: set[Callable[..., Any]] = {_aten.empty.memory_format, _aten.empty_strided.default}


def _fill_from_host(destination: XlaTensor, source: torch.Tensor, non_blocking: bool) -> None:
    """Let an empty tensor be the copy itself, and the operation that made it be forgotten."""
    current_graph().forget_last()
    moved = from_host(source.to("cpu", destination.dtype), non_blocking)
    if moved.stride() != destination.stride():
        with spread.whole_values():
            inner = torch.empty_strided(
                destination.shape, destination.stride(), dtype=moved.lazy.inner.dtype, device=neuron_device()
            )
            with native.unrecorded():
                inner.copy_(moved.lazy.inner)
        destination.lazy.inner = inner
        return
    destination.lazy.inner = moved.lazy.inner


def fallback(func: Any, *args: Any, **kwargs: Any) -> Any:
    """The kernel of every operator for the dispatch key XLA: factory functions come here."""
    return dispatch(func, args, kwargs)
