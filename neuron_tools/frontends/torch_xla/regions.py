"""Code whose every run is a graph of its own: `torch_xla.compile` and `torch_xla.step`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from neuron_tools.frontends.torch_xla.causes import cause_of
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.execution import current_graph, eagerly, holding, sync
from neuron_tools.frontends.torch_xla.graph import GraphSignature

_known: WeakKeyDictionary[Callable[..., Any], list[GraphSignature]] = WeakKeyDictionary()


class Region:
    """A function, or a block.

    Args:
        function: The function; None for a block.
        name: What its graphs are called; by default after the function, or the lines that run them.
        is_whole: Whether nothing may run before its end, so that it is one graph.
        most_graphs: How many different graphs it may have, all regions of the function counted; None for any
            number.
    """

    def __init__(
        self,
        function: Callable[..., Any] | None = None,
        name: str | None = None,
        is_whole: bool = False,
        most_graphs: int | None = None,
    ) -> None:
        self._name = str(name or getattr(function, "__name__", ""))
        self._is_whole, self._most = is_whole, most_graphs
        self._known = list[GraphSignature]() if function is None else _known.setdefault(function, [])

    @contextmanager
    def entered(self) -> Iterator[None]:
        """A run of it.

        Raises:
            XlaError: Something ran before its end, or its graph is one too many.
        """
        sync()
        with eagerly(False):
            try:
                with holding(self._is_whole):
                    yield
                self._check()
            finally:
                sync(self._name)

    def _check(self) -> None:
        graph = current_graph()
        if self._most is None or not graph.operations:
            return
        signature = graph.signature(graph.outputs())
        if signature in self._known:
            return
        if len(self._known) >= self._most:
            raise XlaError(
                f"Maximum number of different graphs allowed per function exceeded: {self._most} "
                f"({cause_of(signature, self._known)}). Call {self._name or 'it'} with arguments of the same "
                "shapes, or let max_different_graphs be larger."
            )
        self._known.append(signature)
