"""Which part of a public test lacked time or memory, as the scoreboard of public kernels tells it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripts.public_places import place_of


def test_reference_inputs_and_kernel_are_told_apart() -> None:
    assert _place(golden_of_attention) == "(in the library's own reference)"
    assert _place(draw_inputs) == "(in the test's own inputs)"
    assert _place(_compiled("neuron_tools/nki/run.py")) == "(in the simulated kernel)"
    assert _place(_compiled("test/utils/output_validator.py")) == "(in the library's comparison)"


def test_a_wrapped_error_counts_where_it_was_raised() -> None:
    def wrapped() -> None:
        try:
            golden_of_attention()
        except MemoryError as error:
            raise RuntimeError("the inference failed") from error

    assert _place(wrapped) == "(in the library's own reference)"


def golden_of_attention() -> None:
    raise MemoryError


def draw_inputs() -> None:
    raise MemoryError


def _compiled(file: str) -> Callable[[], None]:
    """A function of this file that lacks memory."""
    names: dict[str, Callable[[], None]] = {}
    exec(compile("def run():\n    raise MemoryError\n", file, "exec"), names)
    return names["run"]


def _place(function: Callable[[], None]) -> str:
    with pytest.raises((MemoryError, RuntimeError)) as caught:
        function()
    return place_of(caught.value)
