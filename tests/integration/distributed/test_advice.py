"""Planted faults of jobs of two ranks: found first, and their gain is what mending gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import neuron_tools
from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.ranks.engine import summarise_job
from neuron_tools.profile.reader import Profile
from tests.integration.analysis.headlines import headline
from tests.integration.analysis.planted_faults import FOLDER, read_fault
from tests.integration.distributed.jobs import capture, torchrun

TOLERANCE = 0.15
_TIME = """
SELECT max(end_ts) - min(start_ts) AS time_ns FROM SystemProfileEvents WHERE name = 'nc_exec_running'
"""


def captured(folder: Path, name: str, text: str) -> Path:
    script = folder / f"{name}.py"
    script.write_text(text)
    done = capture(torchrun(script, 2), folder / f"{name}.nprof")
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / f"{name}.nprof"


def job_ns(profile: Profile) -> int:
    """From the first execution of any rank to the end of the last one."""
    return int(profile.query(_TIME).to_pylist()[0]["time_ns"])


def _words(text: str) -> str:
    """A sentence without its numbers and their units."""
    return re.sub(r"\d[\d.,]*( ([nµm]?s|%))?", "", text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("straggler", "collective_skew"),
        ("serial_all_reduce", "serial_collectives"),
        ("expert_imbalance", "expert_imbalance"),
        ("uneven_stages", "pipeline_bubbles"),
        ("few_microbatches", "pipeline_bubbles"),
    ],
)
def test_the_planted_fault_is_found_first_with_its_gain(tmp_path, name, rule):
    fault = read_fault(FOLDER / f"{name}.py")
    faulty = captured(tmp_path, "faulty", fault.faulty)
    with neuron_tools.open_profile(faulty) as profile:
        first, faulty_ns = advise(profile)[0], job_ns(profile)
    with neuron_tools.open_profile(captured(tmp_path, "mended", fault.mended)) as profile:
        mended_ns = job_ns(profile)
    assert (first.rule, Path(first.place.file).name, first.place.line) == (rule, "faulty.py", fault.line)
    assert first.gain_ns == pytest.approx(faulty_ns - mended_ns, rel=TOLERANCE)
    assert _words(first.title) in _words(headline(faulty))  # a profile opens on a step, with its own numbers
    assert f"at faulty.py:{fault.line}" in headline(faulty)
    job = summarise_job([str(faulty)])
    assert [row.rank for row in job.ranks] == [0, 1]
    assert [each.role for each in job.without_device_work] == ["launcher"]
    if rule == "collective_skew":
        assert first.evidence["rank"] == 1
        assert "Rank 1 comes late" in headline(faulty)
        assert job.stragglers == (1,)


@pytest.mark.slow
def test_too_few_microbatches_are_found_where_two_physical_cores_are_one(tmp_path, monkeypatch):
    monkeypatch.delenv("NEURON_LOGICAL_NC_CONFIG")
    fault = read_fault(FOLDER / "few_microbatches.py")
    with neuron_tools.open_profile(captured(tmp_path, "faulty", fault.faulty)) as profile:
        first, faulty_ns = advise(profile)[0], job_ns(profile)
    with neuron_tools.open_profile(captured(tmp_path, "mended", fault.mended)) as profile:
        mended_ns = job_ns(profile)
        assert "pipeline_bubbles" not in [each.rule for each in advise(profile)]
    assert (first.rule, first.place.line) == ("pipeline_bubbles", fault.line)
    assert first.gain_ns == pytest.approx(faulty_ns - mended_ns, rel=TOLERANCE)
