"""Kernel calls as text, and back."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from neuron_tools.nki.abstract import AbstractArray
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.launch_record import describe_launch, read_arguments


def kernel(a, *others):
    """A function at the top of a module."""


def test_arrays_become_shapes_and_types_and_plain_values_stay() -> None:
    tensor = np.zeros((128, 4), ml_dtypes.bfloat16)
    given = (tensor, [1, 2.5], (True, None), {"axis": "rows"}, as_dtype("float32"))
    launch = describe_launch(kernel, given, {"scale": 0.5}, (2,), 2)
    assert launch is not None
    assert (launch.module, launch.function, launch.file) == (__name__, "kernel", __file__)
    assert (launch.grid, launch.cores) == ((2,), 2)
    arguments, keywords = read_arguments(launch.arguments)
    assert isinstance(arguments[0], AbstractArray)
    assert arguments[0].form == ((128, 4), "bfloat16")
    assert arguments[1:] == given[1:]
    assert keywords == {"scale": 0.5}


def test_calls_that_cannot_be_made_again_have_no_text() -> None:
    assert describe_launch(kernel, (object(),), {}) is None
    assert describe_launch(lambda a: a, (), {}) is None

    def inner(a):
        """A function that no import finds."""

    assert describe_launch(inner, (), {}) is None
