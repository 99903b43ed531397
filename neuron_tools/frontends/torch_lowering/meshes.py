"""Groups of ranks that a name says by itself: of a program that one process traces and runs on all cores.

Such a name stands where collectives have that of a process group, which there is none of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

PREFIX = "ranks "
Groups = tuple[tuple[int, ...], ...]
_traced: ContextVar[bool] = ContextVar("ranks_are_traced", default=False)


def mesh_name(groups: Sequence[Sequence[int]]) -> str:
    """The name of groups of ranks, all of one size: "ranks 0,1;2,3"."""
    return PREFIX + ";".join(",".join(map(str, group)) for group in groups)


def groups_of(name: object) -> Groups | None:
    """The groups that a name says; None where it is the name of a process group."""
    if not isinstance(name, str) or not name.startswith(PREFIX):
        return None
    return tuple(tuple(map(int, group.split(","))) for group in name.removeprefix(PREFIX).split(";"))


@contextmanager
def tracing_ranks() -> Iterator[None]:
    """In the block a model is traced once for all ranks: its collectives name their groups so."""
    token = _traced.set(True)
    try:
        yield
    finally:
        _traced.reset(token)


def is_tracing_ranks() -> bool:
    """Whether a model is traced for all ranks."""
    return _traced.get()
