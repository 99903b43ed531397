from __future__ import annotations

import pytest

from neuron_explorer.api.functions import find_functions

TEXT = """\
import nki


class Model:
    @staticmethod
    def forward(x):
        def inner(y):
            return y
        return inner(x)


@nki.jit
def kernel(a):
    return a


@nki.jit(mode="trace")
async def other(a):
    return a


@jit
def traced(a):
    return a
"""


def test_names_are_qualified_and_lines_include_decorators() -> None:
    found = {row.name: (row.line, row.first, row.last) for row in find_functions(TEXT)}
    assert found["Model.forward"] == (6, 5, 9)
    assert found["Model.forward.inner"] == (7, 7, 8)
    assert found["kernel"] == (13, 12, 14)


def test_kernels_are_known_by_their_decorator() -> None:
    assert [row.name for row in find_functions(TEXT) if row.is_kernel] == ["kernel", "other"]


@pytest.mark.parametrize("text", ["def broken(:", "\0", "(" * 5000, "", "not python at all"])
def test_what_is_not_python_has_none(text: str) -> None:
    assert find_functions(text) == ()
