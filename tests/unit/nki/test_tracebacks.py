"""A kernel's error shows the user's lines; this package's frames only where they may be at fault."""

import traceback
from pathlib import Path

import numpy as np
import pytest

import neuron_tools
import neuron_tools.compat.nki as nki
import neuron_tools.compat.nki.isa as nisa
import neuron_tools.compat.nki.language as nl
from neuron_tools.nki import execution
from neuron_tools.nki.errors import NkiError
from neuron_tools.nki.tracebacks import TRACEBACK_VARIABLE

A = np.ones((128, 512), np.float32)
OURS = str(Path(neuron_tools.__file__).parent)


def wrong_tiles(a):
    x = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
    y = nl.ndarray((128, 256), dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)


def wrong_python(a):
    return {}["absent"]


def outer(a):
    return nki.jit(wrong_python)(a)


def frames_below(call):
    """Functions in the traceback of what a call raises, below the test's own; this package's as `...`."""
    with pytest.raises((NkiError, LookupError, ArithmeticError)) as raised:
        call()
    frames = traceback.extract_tb(raised.value.__traceback__)
    return ["..." if frame.filename.startswith(OURS) else frame.name for frame in frames][2:]


WAYS = {
    "call": lambda function: nki.jit(function)(A),
    "simulate": lambda function: nki.simulate(nki.jit(function))(A),
    "cpu_simulate": lambda function: nki.cpu_simulate(nki.jit(function))(A),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("function", [wrong_tiles, wrong_python])
def test_a_traceback_goes_from_the_call_to_the_kernels_line(way, function):
    assert frames_below(lambda: way(function)) == ["<lambda>", "...", function.__name__]


def test_a_kernel_that_a_kernel_calls_stands_below_it():
    assert frames_below(lambda: nki.jit(outer)(A)) == ["...", "outer", "wrong_python"]


def test_what_an_error_was_made_from_is_shown_alike():
    with pytest.raises(TypeError) as raised:
        nki.jit(lambda a: nl.ndarray((128, 512), dtype=a.dtype, colour=3))(A)
    cause = traceback.extract_tb(raised.value.__cause__.__traceback__)
    assert [frame.name for frame in cause] == ["<lambda>"]


def test_a_fault_of_this_package_keeps_its_frames(monkeypatch):
    module = {"__name__": "neuron_tools.nki.at_fault"}
    exec("def compute(*arguments): return 1 / 0", module)
    monkeypatch.setattr(execution, "compute", module["compute"])
    shown = frames_below(lambda: nki.jit(wrong_python)(A))
    assert shown.count("...") > 1
    assert shown[-1] == "compute"


def test_all_frames_are_kept_on_demand(monkeypatch):
    monkeypatch.setenv(TRACEBACK_VARIABLE, "full")
    assert frames_below(lambda: nki.jit(wrong_python)(A)).count("...") > 3
