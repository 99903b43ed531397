"""Python that the NKI compiler reads only from release 0.7 on: told, or refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from neuron_tools.compat.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.kernel import jit
from neuron_tools.nki.python_subset import SubsetWarning
from neuron_tools.nki.simulation import simulate

A = np.ones((8, 8), np.float32)


class Plain(nl.NKIObject):
    size: int = 8


class Derived(Plain):
    more: int = 1


def tile(x: Any) -> Any:
    made = nl.ndarray(x.shape, x.dtype, nl.sbuf)
    nisa.dma_copy(made, x)
    return made


def stored(made: Any) -> Any:
    result = nl.ndarray(made.shape, made.dtype, nl.shared_hbm)
    nisa.dma_copy(result, made)
    return result


def added_by(x: Any, amounts: Any) -> Any:
    made = tile(x)
    for amount in amounts:
        nisa.tensor_scalar(made, made, nl.add, float(amount))
    return stored(made)


def comprehension(x: Any) -> Any:
    return added_by(x, [i % 3 for i in range(3)])


def generator(x: Any) -> Any:
    return added_by(x, (i for i in range(3)))


def yielding(x: Any) -> Any:
    def amounts() -> Any:
        yield from (0, 1, 2)

    return added_by(x, amounts())


def attempt(x: Any) -> Any:
    try:
        return added_by(x, (0, 1, 2))
    except ValueError:
        return x


def lambdas(x: Any) -> Any:
    twice = lambda value: 3 * value  # noqa: E731
    return added_by(x, (twice(1),))


def a_set(x: Any) -> Any:
    return added_by(x, {0, 1, 2})


def numbered(x: Any) -> Any:
    return added_by(x, {0: 1, 1: 2, 2: 0})


def by_keyword(x: Any, *, amount: int = 3) -> Any:
    return added_by(x, (amount,))


def derived(x: Any) -> Any:
    return added_by(x, (2, Derived(8).more))


def importing(x: Any) -> Any:
    import math

    return added_by(x, (math.floor(3.5),))


def warned(x: Any) -> Any:
    with warnings.catch_warnings():
        return added_by(x, (1, 2))


OUTSIDE = {
    comprehension: "a list comprehension",
    generator: "a generator expression",
    yielding: "a generator",
    attempt: "try",
    lambdas: "a lambda",
    a_set: "a set",
    numbered: "a dictionary key that is no string",
    by_keyword: "given by keyword only",
    derived: "a class derived from Plain",
    importing: "an import",
    warned: r"with warnings\.catch_warnings",
}


@pytest.mark.parametrize("function", OUTSIDE, ids=lambda function: function.__name__)
def test_what_the_compiler_does_not_read(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each adds 3: by default it runs, with a warning at its line; the reading front end refuses it."""
    kernel = jit(function)
    with pytest.warns(SubsetWarning, match=f"{__file__}:.*{OUTSIDE[function]}.*outside the Python"):
        assert (kernel(A) == 4).all()
    for name, value in (("NKI_STRICT", "1"), ("NKI_COMPILER_FRONTEND", "custom")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(NkiValidationError, match=OUTSIDE[function]) as caught:
                simulate(kernel)(A)
            assert caught.value.where.startswith(f"{__file__}:")


def test_each_kernel_is_told_once_and_never_where_that_is_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def again(x: Any) -> Any:
        return added_by(x, [i % 3 for i in range(3)])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.setenv("NKI_STRICT", "0")
        jit(again)(A)
        monkeypatch.delenv("NKI_STRICT")
        with pytest.raises(SubsetWarning):
            jit(again)(A)
        jit(again)(A)


def inside(x: Any, shape: Any = None) -> Any:
    """What both guides have, and AWS's kernels use."""
    if shape is None:
        shape = x.shape
    named = {"amounts": [0, 1]}
    named["amounts"].append(2)
    held = Plain()
    assert isinstance(held, Plain), f"no {held.size}"
    with nl.no_reorder():
        made = tile(x)
    at = 0
    while at < len(named["amounts"]):
        nisa.tensor_scalar(made, made, nl.add, 1.0 if at != 1 else 1)
        at += 1
    return stored(made)


def test_what_the_compiler_reads_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (jit(inside)(A) == 4).all()
