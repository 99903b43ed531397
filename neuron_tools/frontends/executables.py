"""Where a compiled graph gets its executable: the capture session installs a provider while it records.

Without a provider a graph only computes its values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from neuron_tools.compiler.hlo import Module
from neuron_tools.frozen import frozen
from neuron_tools.records.program import FrameworkOperation, Program


@frozen
class SharedCode:
    """What executables of one graph have in common when several modules run it: all but where it stands.

    Attributes:
        key: Stands for the graph and its sizes in this process.
        framework: Makes the framework rows of the module that runs it now, one for each of the first one's.
    """

    key: Hashable
    framework: Callable[[], Sequence[FrameworkOperation]]


class ExecutableProvider(Protocol):
    """Compiles and times modules, once per key."""

    def executable_for(
        self, module_factory: Callable[[], Module], key: Hashable, name: str, shared: SharedCode | None = None
    ) -> tuple[int, int]:
        """Executable number and device time in ns.

        Args:
            module_factory: Makes the module; called only when `key` is new.
            key: Stands for the module in this process.
            name: What to call it.
            shared: What it has in common with others: these are compiled and simulated once.
        """

    def executable_of(self, program: Program, key: Hashable, *, eager: bool = False) -> tuple[int, int]:
        """Executable number and device time in ns of what is compiled already.

        Args:
            program: What to run.
            key: Stands for the program in this process.
            eager: Whether each execution's own line and module stand for all of it.
        """

    def executables_of(
        self, programs: Sequence[Program], key: Hashable, *, eager: bool = False
    ) -> tuple[tuple[int, int], ...]:
        """(number, device time in ns) for each logical core that Programs of physical cores run on together.

        Args:
            programs: One for each physical core.
            key: Stands for them in this process.
            eager: See `executable_of`.
        """

    def executables_together(self, programs: Sequence[Program], key: Hashable) -> list[tuple[int, int]]:
        """Executable numbers and device times in ns of Programs that run at once on neighbouring cores.

        Args:
            programs: One a core.
            key: Stands for them in this process.
        """


_provider: ExecutableProvider | None = None
_is_paused: ContextVar[bool] = ContextVar("is_paused", default=False)
"""Of each thread: libraries compile in several at once."""


def current() -> ExecutableProvider | None:
    """The provider of the running capture, or None."""
    return None if _is_paused.get() else _provider


@contextmanager
def without_provider() -> Iterator[None]:
    """Let nothing that this thread does in the block be recorded: graphs only compute their values."""
    token = _is_paused.set(True)
    try:
        yield
    finally:
        _is_paused.reset(token)


def install(provider: ExecutableProvider) -> Callable[[], None]:
    """Make `provider` the current one; returns a function that puts the previous one back."""
    global _provider
    previous, _provider = _provider, provider

    def uninstall() -> None:
        global _provider
        _provider = previous

    return uninstall
