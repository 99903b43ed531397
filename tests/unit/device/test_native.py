"""The typed face of the C++ core."""

import subprocess
import sys

import pytest

from neuron_tools.device import native


def test_an_unknown_clock_is_refused():
    with pytest.raises(ValueError, match='"measured" or "fixed"'):
        native.set_clock("sundial")


def test_the_device_may_be_asked_before_torch_is_imported():
    """Torch registers the device while it is imported, and asks it then."""
    code = "from neuron_tools.device import native; print(native.suppress(False))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout, done.returncode) == ("False\n", 0)


def test_suppression_module_and_optimizer_give_back_what_held_before():
    assert native.suppress(True) is False
    assert native.suppress(False) is True
    assert native.set_module(9) == 0
    assert native.set_module(0) == 9
    assert native.set_optimizer(True) is False
    assert native.set_optimizer(False) is True


def test_a_negative_memory_limit_means_none():
    native.set_memory_limit(-5)
    assert native.memory_limit() == 0


def test_without_a_recording_nothing_is_recorded():
    assert not native.is_recording()
    assert not native.is_timing()
    native.flush()
    native.run_graph(1, 1_000, 0)
    native.record_range(0, 0, 1, 8)
    assert not native.is_recording()


def test_the_clock_resumes_once_for_each_pause():
    begin = native.pause_clock()
    assert native.host_now_ns() == begin
    native.resume_clock()
    native.resume_clock()
    later = native.host_now_ns()
    assert native.host_now_ns() >= later >= begin
