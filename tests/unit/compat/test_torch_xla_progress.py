"""What training scripts of PyTorch/XLA tell of their progress, and where they run."""

import os
from types import SimpleNamespace

import pytest

from neuron_tools import compat
from neuron_tools.device import native


@pytest.fixture(scope="module")
def torch_xla():
    uninstall = compat.install()
    import torch_xla

    yield torch_xla
    uninstall()


@pytest.fixture(params=["simulated time", "the system's clock"])
def clock(request, monkeypatch):
    """A clock that the test sets, beside another that stands still."""
    now, stands = SimpleNamespace(ns=0), lambda: 0
    is_simulated = request.param == "simulated time"
    monkeypatch.setattr(native, "is_timing", lambda: is_simulated)
    monkeypatch.setattr(native, "host_now_ns", (lambda: now.ns) if is_simulated else stands)
    monkeypatch.setattr(native, "wall_now_ns", stands if is_simulated else (lambda: now.ns))
    return now


def test_rates_are_smoothed_and_the_whole_is_not(torch_xla, clock):
    tracker = torch_xla.core.xla_model.RateTracker()
    assert (tracker.rate(), tracker.global_rate()) == (0, 0)
    tracker = torch_xla.core.xla_model.RateTracker()
    for seconds, samples, rate in [(1, 100, 100), (2, 300, 0.6 * 300 + 0.4 * 100)]:
        clock.ns = seconds * 10**9
        tracker.add(samples)
        assert tracker.rate() == pytest.approx(rate)
    assert tracker.global_rate() == pytest.approx(200)


def test_a_program_is_launched_here_alone_to_debug_it(torch_xla, monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setenv("NEURONCORE_NUM_DEVICES", "2")
    launched = torch_xla.launch(lambda *args: (os.getpid(), *args), ("flags",), debug_single_process=True)
    assert launched == (os.getpid(), 0, "flags")


def test_numbers_are_written_where_there_is_a_writer(torch_xla, capsys):
    from torch_xla.test import test_utils

    written = {}
    writer = SimpleNamespace(
        add_scalar=lambda name, value, step: written.update({name: (value, step)}),
        close=lambda: written.update(closed=True),
    )
    torch_xla._XLAC._xla_increment_counter("Batches", 3)
    for each in (writer, test_utils.get_summary_writer(None)):
        test_utils.write_to_summary(each, 7, {"Accuracy": 98.5}, write_xla_metrics=True)
        test_utils.print_training_update("xla:0", 7, 0.5, 10, 20, summary_writer=each)
        test_utils.close_summary_writer(each)
    assert written["Accuracy"] == (98.5, 7)
    assert written["Batches"] == (3, 7)
    assert (written["examples/sec"], written["average_examples/sec"]) == ((10, None), (20, None))
    assert written["closed"]
    assert capsys.readouterr().out.count("Loss=0.50000 Rate=10.00 GlobalRate=20.00") == 2


def test_the_compiled_part_reports_metrics_too(torch_xla):
    torch_xla._XLAC._xla_increment_counter("Seen", 2)
    assert "Counter: Seen\n  Value: 2\n" in torch_xla._XLAC._xla_metrics_report()
