"""`nki.compiler`: where tiles are placed, and hints, which change nothing that the simulator does not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from neuron_tools.nki.language.structure import no_reorder
from neuron_tools.nki.placement import psum, sbuf


def _decorator(name: str, about: str) -> Callable[..., Any]:
    def hint(func: Callable[..., Any] | None = None, **_options: Any) -> Any:
        return (lambda inner: inner) if func is None else func

    hint.__name__ = hint.__qualname__ = name
    hint.__doc__ = about
    return hint


enable_stack_allocator = _decorator("enable_stack_allocator", "Allocate on-chip tiles like a stack.")
force_auto_alloc = _decorator("force_auto_alloc", "Ignore the kernel's own placement of tiles.")


def skip_middle_end_transformations(func: Any = None, **_options: Any) -> Any:
    """Keep the compiler's passes over loops away from a kernel."""

    def skipping(inner: Any) -> Any:
        function = getattr(inner, "func", inner)
        function.skips_middle_end = True
        return inner

    return skipping if func is None else skipping(func)


@contextmanager
def _block(*_arguments: Any, **_options: Any) -> Iterator[None]:
    yield


def allocation_scope(*arguments: Any, **options: Any) -> Any:
    """Tiles of a block end with it; the simulator ends every tile with its last use."""
    return _block(*arguments, **options)


def multi_buffer(factor: int = 2) -> Any:
    """Let tiles of a loop be buffered several times; the simulator buffers as SBUF allows."""
    return _block(factor)


__all__ = [
    "allocation_scope", "enable_stack_allocator", "force_auto_alloc", "multi_buffer", "no_reorder", "psum",
    "sbuf", "skip_middle_end_transformations",
]  # fmt: skip
