"""A layout whose profile stands there already is read where it is whole; one that fails says why."""

import sys

import pytest

from neuron_profile.analysis.layouts import Layout
from neuron_profile.launch.sweep import measure_layout
from neuron_tools.profile.writer import ProfileWriter

LAYOUT = Layout((("pp", 1), ("dp", 4)))


@pytest.mark.parametrize(("complete", "exit_status"), [(False, 143), (True, 1)])
def test_what_was_interrupted_or_failed_is_no_measurement(tmp_path, complete, exit_status):
    ProfileWriter(tmp_path / "pp1-dp4.nprof", {}).close(complete=complete, exit_status=exit_status)
    found = measure_layout(LAYOUT, ["never", "started"], "trn2", tmp_path, None)
    assert "ended early: remove" in found.limit
    assert not found.fits


@pytest.mark.parametrize(
    ("script", "target", "other"), [("other.py", "trn2", "command"), ("mine.py", "trn1", "target")]
)
def test_a_profile_of_another_command_or_target_is_no_measurement(tmp_path, script, target, other):
    asked = {"command": ["python", script], "target": target}
    ProfileWriter(tmp_path / "pp1-dp4.nprof", asked).close(complete=True)
    found = measure_layout(LAYOUT, ["python", "mine.py"], "trn2", tmp_path, None)
    assert f"is of another {other}: remove it" in found.limit
    assert not found.fits


def test_a_layout_that_cannot_be_is_not_started(tmp_path):
    layout = Layout((("dp", 4), ("ep", 3)))
    found = measure_layout(layout, ["never", "started"], "trn2", tmp_path, None)
    assert (found.limit, found.fits) == (layout.problem, False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("raise ValueError('two ranks and no more')", " (ValueError: two ranks and no more)"),
        ("import sys; print('[rank3]: ValueError: of a rank'); sys.exit(1)", " (ValueError: of a rank)"),
        ("raise SystemExit(1)", ""),
    ],
)
def test_a_layout_whose_command_fails_tells_what_it_said_last(tmp_path, script, said):
    path = tmp_path / "train.py"
    path.write_text(script)
    found = measure_layout(Layout((("dp", 1),)), [sys.executable, str(path)], "trn2", tmp_path / "out", None)
    log = tmp_path / "out" / "dp1.log"
    assert found.limit == f"the command failed with status 1{said}: see {log}"
    assert not found.fits
