"""Where a recorded operation comes from: the user's lines, the module, forward or backward."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType, FrameType

import torch
from torch.autograd.function import BackwardCFunction

import neuron_tools
from neuron_tools.frontends.torch_hooks.modules import current_module
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Frame

_NOT_THE_USERS = (
    os.path.dirname(torch.__file__) + os.sep,
    os.path.dirname(neuron_tools.__file__) + os.sep,
    "<frozen ",
)
_CALLS_BACKWARD = (BackwardCFunction.apply.__code__, BackwardCFunction.apply_boxed.__code__)
MOST_FRAMES = 32
MOST_FORWARD = 200_000
"""Forward operations whose origin is kept for their gradients; the oldest go first."""


@frozen
class Origin:
    """Who asked for an operation.

    Attributes:
        stack: Frames of the user's code, innermost first.
        module_path: Path of the module that was being called.
        module_class: Its class.
        backward: Whether autograd asked for it; the module is then that of the forward operation, and so is
            the stack, but for what the user's `backward` of a `torch.autograd.Function` does itself.
        recomputed: A module that a backward pass calls again asked for it.
        sequence: Autograd's number of the forward operation; -1 without one.
    """

    stack: tuple[Frame, ...] = ()
    module_path: str = ""
    module_class: str = ""
    backward: bool = False
    recomputed: bool = False
    sequence: int = -1


_UNKNOWN = Origin()
_forward: dict[int, Origin] = {}
_again: dict[int, Origin] = {}
"""Of what is computed in a backward pass: its thread has numbers of its own, which begin anew."""
_recent = threading.local()
_frames: dict[tuple[object, int], Frame | None] = {}


@contextmanager
def told(origin: Origin) -> Iterator[None]:
    """A block of the calling thread whose operations have this origin, whatever lines it runs at."""
    before = getattr(_recent, "told", None)
    _recent.told = origin
    try:
        yield
    finally:
        _recent.told = before


def current_origin() -> Origin:
    """The origin of the operation that is being dispatched."""
    known: Origin | None = getattr(_recent, "told", None)
    if known is not None:
        return known
    node = torch._C._current_autograd_node()
    if node is not None:
        origin, (path, class_name) = _of_gradient(node, sys._getframe(1)), current_module()
        if not path:
            return origin
        return replace(origin, module_path=path, module_class=class_name, recomputed=True)
    stack = user_stack(sys._getframe(1))
    if not stack:  # autograd adds up gradients between its nodes
        return getattr(_recent, "origin", _UNKNOWN)
    path, class_name = current_module()
    sequence = torch.autograd._get_sequence_nr() - 1
    origin = Origin(stack, path, class_name, sequence=sequence)
    _remember(_forward, sequence, origin)
    return origin


def user_stack(frame: FrameType | None, ends: Container[CodeType] = ()) -> tuple[Frame, ...]:
    """Frames of the user's code from `frame` outwards, innermost first, as far as code that `ends` them."""
    found: list[Frame] = []
    while frame is not None and len(found) < MOST_FRAMES and frame.f_code not in ends:
        known = _frame(frame)
        if known is not None:
            found.append(known)
        frame = frame.f_back
    return tuple(found)


def _frame(frame: FrameType) -> Frame | None:
    key = (frame.f_code, frame.f_lineno)
    if key not in _frames:
        name, line = frame.f_code.co_filename, frame.f_lineno
        is_users = not name.startswith(_NOT_THE_USERS)
        _frames[key] = Frame(name, line, frame.f_code.co_name) if is_users else None
    return _frames[key]


def _of_gradient(node: torch.autograd.graph.Node, frame: FrameType) -> Origin:
    recent: Origin = getattr(_recent, "origin", _UNKNOWN)
    known = _again if _is_nested(node, frame) else _forward
    forward = known.get(node._sequence_nr(), recent)
    origin = replace(forward, backward=True)
    _recent.origin = origin
    own = user_stack(frame, _CALLS_BACKWARD) if isinstance(node, BackwardCFunction) else ()
    if not own:
        return origin
    origin = replace(origin, stack=(*own, *_callers(forward.stack, node._forward_cls.forward.__code__)))
    sequence = torch.autograd._get_sequence_nr() - 1
    _again.pop(sequence, None)
    _remember(_again, sequence, origin)  # checkpoints compute the forward pass there
    return origin


def _is_nested(node: torch.autograd.graph.Node, frame: FrameType | None) -> bool:
    """Whether a backward pass runs that the `backward` of a `torch.autograd.Function` has begun."""
    outer = -1 if isinstance(node, BackwardCFunction) else 0
    while frame is not None and outer < 1:
        outer += frame.f_code in _CALLS_BACKWARD
        frame = frame.f_back
    return outer > 0


def _callers(stack: tuple[Frame, ...], code: CodeType) -> tuple[Frame, ...]:
    """The frames of a stack outside a function; none where it is not in it, as with PyTorch's own ones."""
    lines = {line for _, _, line in code.co_lines()}
    inside = [i for i, frame in enumerate(stack) if frame.file == code.co_filename and frame.line in lines]
    return stack[inside[0] + 1 :] if inside else ()


def _remember(known: dict[int, Origin], sequence: int, origin: Origin) -> None:
    """The first operation that is seen with a number is the one that autograd gave it to."""
    if sequence < 0 or sequence in known:
        return
    if len(known) >= MOST_FORWARD:
        for oldest in list(known)[: MOST_FORWARD // 2]:
            del known[oldest]
    known[sequence] = origin
