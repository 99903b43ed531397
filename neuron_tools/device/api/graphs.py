"""Graphs of device work, captured once and replayed as one execution, as `torch.cuda.graphs` has them.

While a graph is captured its operations compute what tells later ones their shapes, unseen and untimed;
what they wrote to tensors from before is put back. A replay computes them all, compiled as one graph, into
the tensors that the capture made.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import torch
from torch import fx

from neuron_tools.device.api.captured_graph import Capture
from neuron_tools.device.errors import GraphCaptureError

PoolHandle: TypeAlias = "tuple[int, int]"
_pools = itertools.count(1)
_capturing: list[NeuronGraph] = []


class NeuronGraph:
    """A graph of device work.

    Example:
        >>> x = torch.zeros(3, device="neuron")
        >>> graph = torch.neuron.NeuronGraph()
        >>> with torch.neuron.graph(graph):
        ...     y = x + 1
        >>> x.fill_(4), graph.replay(), y
        (tensor([4., 4., 4.]), None, tensor([5., 5., 5.]))
    """

    def __init__(self, keep_graph: bool = False) -> None:
        """A graph that holds nothing yet; it is compiled at its first replay, whatever `keep_graph` says."""
        self._pool: PoolHandle = (0, next(_pools))
        self._capture: Capture | None = None
        self._captured: tuple[fx.GraphModule, list[torch.Tensor]] | None = None
        self._compiled: Callable[..., Any] | None = None

    def capture_begin(self, pool: PoolHandle | None = None, capture_error_mode: str = "global") -> None:
        """Capture what the calling thread and its backward passes do from here.

        Args:
            pool: Of another graph; memory needs no pools here.
            capture_error_mode: Has no effect: reading a value fails in the capturing thread alone.

        Raises:
            GraphCaptureError: A graph is being captured already, or this one was not reset.
        """
        if _capturing or self._captured is not None:
            raise GraphCaptureError("A graph is captured already: end it, or reset this one before.")
        self._pool = pool or self._pool
        self._capture = Capture()
        _capturing.append(self)
        self._capture.begin()

    def capture_end(self) -> None:
        """End the capture.

        Raises:
            GraphCaptureError: This graph is not being captured.
        """
        capture = self._end()
        self._captured = capture.function()
        self._compiled = torch.compile(self._captured[0], backend="neuron", dynamic=False)

    def _end(self) -> Capture:
        if self._capture is None:
            raise GraphCaptureError("This graph is not being captured: call capture_begin() first.")
        _capturing.remove(self)
        capture, self._capture = self._capture, None
        capture.end()
        return capture

    def instantiate(self) -> None:
        """Does nothing: the graph is compiled when it is first replayed."""

    def replay(self) -> None:
        """Do what was captured, as one execution, on what its tensors hold now.

        Raises:
            GraphCaptureError: Nothing was captured.
        """
        if self._captured is None or self._compiled is None:
            raise GraphCaptureError("There is nothing to replay: capture a graph first.")
        with torch.no_grad():
            self._compiled(*self._captured[1])

    def reset(self) -> None:
        """Forget what was captured; a capture that goes on is given up."""
        if self._capture is not None:
            self._end()
        self._captured = self._compiled = None

    def pool(self) -> PoolHandle:
        """The id of the graph's memory pool."""
        return self._pool

    def enable_debug_mode(self) -> None:
        """Does nothing: `debug_dump` needs no preparation."""

    def debug_dump(self, debug_path: str) -> None:
        """Write the captured graph, one line for each operation, to a file.

        Raises:
            GraphCaptureError: Nothing was captured.
        """
        if self._captured is None:
            raise GraphCaptureError("There is nothing to write: capture a graph first.")
        Path(debug_path).write_text(f"{self._captured[0].graph}\n")


class graph:
    """Context manager: what is done inside is captured into a `NeuronGraph`."""

    def __init__(
        self,
        neuron_graph: NeuronGraph,
        pool: PoolHandle | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self.neuron_graph, self.pool, self.capture_error_mode = neuron_graph, pool, capture_error_mode
        self.stream = contextlib.nullcontext() if stream is None else stream

    def __enter__(self) -> None:
        torch.accelerator.synchronize()
        self.stream.__enter__()
        self.neuron_graph.capture_begin(self.pool, self.capture_error_mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.neuron_graph.capture_end() if kind is None else self.neuron_graph.reset()
        self.stream.__exit__(kind, error, trace)


def graph_pool_handle() -> PoolHandle:
    """The id of a new memory pool."""
    return (0, next(_pools))


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured."""
    return bool(_capturing)


def make_graphed_callables(
    callables: Callable[..., Any] | Sequence[Callable[..., Any]],
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolHandle | None = None,
) -> Any:
    """Functions or modules whose forward and whose backward are one execution each.

    Args:
        callables: One, or several.
        sample_args: Not needed: each is compiled when it is first called.
        num_warmup_iters: Not needed.
        allow_unused_input: Not needed: inputs that are not used have no gradient.
        pool: Not needed.

    Returns:
        The function compiled, or the module with its `forward` compiled; a tuple of them for several.
    """
    if not isinstance(callables, (list, tuple)):
        return _graphed(callables)
    return tuple(_graphed(each) for each in callables)


def _graphed(each: Any) -> Any:
    if not isinstance(each, torch.nn.Module):
        return torch.compile(each, backend="neuron", dynamic=False)
    each.forward = torch.compile(each.forward, backend="neuron", dynamic=False)
    return each
