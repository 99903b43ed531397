"""An artifact's executions stand in its profile one after the other, each as long as simulated."""

from dataclasses import replace
from itertools import pairwise

import pytest

from neuron_tools import hardware, open_profile
from neuron_tools.capture.artifact import Repetition, profile_artifact
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import UsageError
from neuron_tools.profile.verify import verify
from neuron_tools.simulator import simulate
from tests.unit.neff.computation import artifact


@pytest.fixture(scope="module")
def neff():
    return artifact()


def captured(neff, path, **repetition):
    options = CaptureOptions(path, host_clock="fixed")
    return profile_artifact(neff, options, Repetition(**repetition), ["run"])


def test_each_execution_is_as_long_as_simulated_and_waits_for_the_one_before(neff, tmp_path):
    report = captured(neff, tmp_path / "run.nprof", count=3)
    assert (report.executions, report.complete) == (3, True)
    with open_profile(tmp_path / "run.nprof") as profile:
        rows = profile.query("SELECT execution_start_ts s, execution_end_ts e FROM ExecutionInfo").to_pylist()
        assert verify(profile) == []
    duration_ns = -(-simulate(neff.program, hardware.get("trn2")).duration_ps // 1000)
    assert [row["e"] - row["s"] for row in rows] == [duration_ns] * 3
    assert all(later["s"] > earlier["e"] for earlier, later in pairwise(rows))


def test_an_artifact_for_several_cores_runs_on_one_after_the_other(neff, tmp_path):
    captured(replace(neff, stages=[neff.program]), tmp_path / "run.nprof", count=2)
    with open_profile(tmp_path / "run.nprof") as profile:
        rows = profile.query(
            "SELECT pcore_idx core, execution_start_ts s, execution_end_ts e FROM ExecutionInfo ORDER BY s"
        ).to_pylist()
        assert verify(profile) == []
    assert [row["core"] for row in rows] == [0, 1, 0, 1]
    assert all(later["s"] > earlier["e"] for earlier, later in pairwise(rows))


def test_only_every_nth_execution_is_profiled(neff, tmp_path):
    assert captured(neff, tmp_path / "run.nprof", count=5, profile_every=2).executions == 2


def test_the_profile_is_written_once(neff, tmp_path):
    captured(neff, tmp_path / "run.nprof")
    with pytest.raises(UsageError, match="exists"):
        captured(neff, tmp_path / "run.nprof")


@pytest.mark.parametrize(
    ("count", "every", "says"), [(0, 1, "at least by 1"), (1, 0, "at least by 1"), (1, 2, "--num-exec")]
)
def test_repetitions_that_profile_nothing_are_refused(count, every, says):
    with pytest.raises(UsageError, match=says):
        Repetition(count, every)
