"""Where calls come from: every chain of callers is a site of its own, however functions take turns."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.kernel import Kernel, jit
from neuron_tools.nki.tracer import Recording

X = np.ones((8, 8), np.float32)


def fill(tile: Any) -> None:
    nisa.memset(tile, 1.0)


def chains(kernel: Callable[[Any], Any]) -> list[list[int]]:
    """Lines of each instruction's frames after the kernel's first line, innermost first."""
    (trace,) = Kernel(kernel).run(X).traces
    start = kernel.__code__.co_firstlineno
    sites = [trace.frames_of(site) for site in trace.row_table()[:, 1]]
    return [[f.line - start for f in frames if f.function.split(".")[-1] == "kernel"] for frames in sites]


def test_one_helper_called_from_two_lines() -> None:
    def kernel(x: Any) -> Any:
        tile = nl.ndarray((8, 8), nl.float32, nl.sbuf)
        fill(tile)
        nisa.memset(tile, 2.0)
        fill(tile)
        fill(tile)
        return x

    assert chains(kernel) == [[2], [3], [4], [5]]


def filled(tiles: list[Any]) -> Iterator[Any]:
    for tile in tiles:
        nisa.memset(tile, 1.0)
        yield tile


def test_a_generator_that_is_resumed_from_two_lines() -> None:
    def kernel(x: Any) -> Any:
        tiles = filled([nl.ndarray((8, 8), nl.float32, nl.sbuf) for _ in range(3)])
        next(tiles)
        next(tiles)
        next(tiles)
        return x

    assert chains(kernel) == [[2], [3], [4]]


def nested(tile: Any, depth: int) -> None:
    if depth:
        nested(tile, depth - 1)
    nisa.memset(tile, 1.0)


def test_a_function_that_calls_itself() -> None:
    def kernel(x: Any) -> Any:
        nested(nl.ndarray((8, 8), nl.float32, nl.sbuf), 2)
        return x

    (trace,) = Kernel(kernel).run(X).traces
    assert [len(trace.frames_of(site)) for site in trace.row_table()[:, 1]] == [4, 3, 2]


def test_functions_of_the_package_between_two_of_the_kernel() -> None:
    def kernel(x: Any) -> Any:
        tile = nl.ndarray((8, 8), nl.float32, nl.sbuf)
        nl.fori_loop(0, 2, lambda i: fill(tile))
        nl.fori_loop(0, 1, lambda i: fill(tile))
        return x

    assert chains(kernel) == [[2], [2], [3]]


class Token:
    """Something that a frame holds."""


@pytest.mark.parametrize("recording", list(Recording))
def test_frames_are_let_go_when_the_kernel_ends(recording: Recording) -> None:
    held = []

    def kernel(x: Any) -> Any:
        token = Token()
        held.append(ref(token))
        fill(nl.ndarray((8, 8), nl.float32, nl.sbuf))
        return x

    done = Kernel(kernel).run(X, recording=recording)
    gc.collect()
    assert done.traces
    assert held[0]() is None


def test_a_plain_call_notes_no_iterations() -> None:
    def kernel(x: Any) -> Any:
        for _ in range(3):
            fill(nl.ndarray((8, 8), nl.float32, nl.sbuf))
        return x

    (checked,) = jit(kernel).run(X, recording=Recording.CALLS).traces
    (whole,) = jit(kernel).run(X).traces
    assert (len(checked.iterations), len(whole.iterations)) == (0, 3)
    assert (checked.row_table()[:, :2] == whole.row_table()[:, :2]).all()
