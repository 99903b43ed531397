"""Operations of the device as they are captured, and the function that does them again."""

from __future__ import annotations

import operator
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from neuron_tools.device import native
from neuron_tools.device.api.random import get_rng_state, set_rng_state
from neuron_tools.device.errors import GraphCaptureError
from neuron_tools.frozen import frozen

_READING = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape})
_BACKWARD_CALL = "_engine_run_backward"
"""The function of torch below which hooks stand where the calling thread runs the backward pass."""


@frozen
class _Call:
    """One operation: its arguments, with the tensors in them, what it returned, and the text of its stack."""

    function: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    result: Any
    stack: str

    def inputs(self) -> list[torch.Tensor]:
        return _tensors((self.args, self.kwargs))


class Capture(TorchDispatchMode):
    """Collects operations, unseen and untimed, and holds what they write to tensors from before."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[_Call] = []
        self._held: dict[StorageWeakRef, tuple[torch.Tensor, torch.Tensor]] = {}
        self._made: set[StorageWeakRef] = set()

    def begin(self) -> None:
        """Capture what the calling thread and its backward passes do from here."""
        self._random_state = get_rng_state()
        self._suppressed = native.suppress(True)
        native.pause_clock()
        # Lets each node of autograd keep the stack of its operation.
        self._stacks_of_nodes = torch.autograd.set_detect_anomaly(True, check_nan=False)
        self.__enter__()

    def end(self) -> None:
        """Capture no more, and put back what tensors from before the capture held."""
        self.__exit__(None, None, None)
        self._stacks_of_nodes.__exit__()
        with torch.no_grad():
            for whole, value in self._held.values():
                whole.copy_(value)
        set_rng_state(self._random_state)
        self._held.clear()
        native.resume_clock()
        native.suppress(self._suppressed)

    def function(self) -> tuple[fx.GraphModule, list[torch.Tensor]]:
        """What was captured as a function, with its arguments: tensors from before, and those it fills.

        Tensors that the capture made and that nobody holds any more are not filled.
        """
        builder = _GraphBuilder()
        while self._calls:  # nothing of a call is held longer than it is needed
            builder.add(self._calls.pop(0))
        made = {key: builder.bases[key] for key in self._made if key in builder.bases}
        for key, base in made.items():
            if not key.expired():
                builder.fill(key, base)
        return builder.finish()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        with native.unrecorded():  # a backward pass calls on a thread of its own
            self._hold_what_is_written(function, args, named)
            result = function(*args, **named)
        call = _Call(function, args, named, result, _stack())
        if call.inputs() or _tensors(call.result):
            _refuse_reading(call)
            self._calls.append(call)
            self._note_what_is_made(call)
        return call.result

    def _hold_what_is_written(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        for tensor in _written(function, args, kwargs):
            key = _storage(tensor)
            if key not in self._made and key not in self._held:
                whole = _whole(tensor)
                self._held[key] = (whole, whole.clone())

    def _note_what_is_made(self, call: _Call) -> None:
        known = {_storage(tensor) for tensor in call.inputs()}
        self._made |= {_storage(tensor) for tensor in _tensors(call.result)} - known - self._held.keys()


@frozen
class _Base:
    """The value that stands for a storage: its node, and how its tensor lies in the storage."""

    node: fx.Node
    dtype: torch.dtype
    size: Sequence[int]
    stride: Sequence[int]
    offset: int


class _GraphBuilder:
    """Makes a graph of calls, in which each storage is one value and other tensors in it are its views."""

    def __init__(self) -> None:
        self.bases: dict[StorageWeakRef, _Base] = {}
        self._graph = fx.Graph()
        self._inputs: list[torch.Tensor] = []  # the last placeholder first
        self._views: dict[tuple[Any, ...], fx.Node] = {}

    def add(self, call: _Call) -> None:
        """Append a call."""
        args, kwargs = pytree.tree_map_only(torch.Tensor, self._value, (call.args, dict(call.kwargs)))
        node = self._graph.call_function(call.function, args, kwargs)
        node.meta["stack_trace"] = call.stack
        if isinstance(call.result, torch.Tensor):
            self._note(call.result, node)
        elif isinstance(call.result, (list, tuple)):
            for index, part in enumerate(call.result):
                if isinstance(part, torch.Tensor):
                    self._note(part, self._graph.call_function(operator.getitem, (node, index)))

    def fill(self, key: StorageWeakRef, base: _Base) -> None:
        """Have the function write a value into a tensor that somebody holds."""
        storage = torch.UntypedStorage._new_with_weak_ptr(key.cdata)
        kept = torch.empty(0, dtype=base.dtype, device=storage.device)
        place = self._placeholder(kept.set_(storage, base.offset, base.size, base.stride))
        self._graph.call_function(torch.ops.aten.copy_.default, (place, base.node))

    def finish(self) -> tuple[fx.GraphModule, list[torch.Tensor]]:
        """The function and its arguments."""
        self._graph.output(())
        return fx.GraphModule(torch.nn.Module(), self._graph), self._inputs[::-1]

    def _value(self, tensor: torch.Tensor) -> Any:
        if tensor.device.type != "neuron":
            return self._placeholder(tensor.detach())
        if (node := self._views.get(_geometry(tensor))) is not None:
            return node
        base = self.bases.get(_storage(tensor))
        if base is None:
            base = self._note(tensor.detach(), self._placeholder(tensor.detach()))
            return base.node
        arguments = (base.node, tensor.size(), tensor.stride(), tensor.storage_offset())
        return self._note_view(
            tensor, self._graph.call_function(torch.ops.aten.as_strided.default, arguments)
        )

    def _placeholder(self, tensor: torch.Tensor) -> fx.Node:
        with self._graph.inserting_before(None):
            node = self._graph.placeholder(f"input_{len(self._inputs)}")
        self._inputs.append(tensor)
        return node

    def _note(self, tensor: torch.Tensor, node: fx.Node) -> _Base:
        self._note_view(tensor, node)
        base = _Base(node, tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset())
        return self.bases.setdefault(_storage(tensor), base)

    def _note_view(self, tensor: torch.Tensor, node: fx.Node) -> fx.Node:
        return self._views.setdefault(_geometry(tensor), node)


def _stack() -> str:
    """The text of the stack of an operation; in a backward pass that of what is differentiated, and below it
    the frames of a hook or of what is computed again.
    """
    frames = traceback.extract_stack()[:-2]  # without those of the capture
    node = torch._C._current_autograd_node()
    if node is None:
        return "".join(traceback.format_list(frames))
    calls = [place for place, frame in enumerate(frames, 1) if frame.name == _BACKWARD_CALL]
    own = frames[calls[-1] :] if calls else frames
    return "".join([*node.metadata.get("traceback_", ()), *traceback.format_list(own)])


def _tensors(values: Any) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves(values)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.device.type == "neuron"]


def _written(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    if function._schema.is_mutable:
        for index, argument in enumerate(function._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = args[index] if index < len(args) else kwargs.get(argument.name)
                yield from _tensors(given)


def _refuse_reading(call: _Call) -> None:
    leaves = [leaf for leaf in pytree.tree_leaves(call.result) if leaf is not None]
    on_host = len(_tensors(leaves)) < len(leaves)
    if call.inputs() and (on_host or _READING.intersection(call.function.tags)):
        raise GraphCaptureError(
            f"{call.function} reads values of the device, which a graph has only when it is replayed: "
            "read them after a replay, and keep shapes and branches independent of values."
        )


def _storage(tensor: torch.Tensor) -> StorageWeakRef:
    return StorageWeakRef(tensor.untyped_storage())


def _geometry(tensor: torch.Tensor) -> tuple[Any, ...]:
    return _storage(tensor), tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset()


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    storage = tensor.untyped_storage()
    flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return flat.set_(storage, 0, (storage.nbytes() // tensor.element_size(),), (1,))
