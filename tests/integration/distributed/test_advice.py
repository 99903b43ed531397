"""A planted straggler and planted serial collectives are the first findings, with rank and line."""

from __future__ import annotations

from pathlib import Path

import pytest

import neuron_tools
from neuron_profile.analysis.advice.advise import advise
from tests.integration.distributed.jobs import capture, torchrun

FAULTS = Path(__file__).parents[3] / "examples" / "faults"


def faulty_line(script: Path) -> int:
    return next(n for n, line in enumerate(script.read_text().splitlines(), 1) if line.endswith("# fault"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule"), [("straggler", "collective_skew"), ("serial_all_reduce", "serial_collectives")]
)
def test_the_planted_fault_is_found_first(tmp_path, name, rule):
    script = FAULTS / f"{name}.py"
    done = capture(torchrun(script, 2), tmp_path / "job.nprof")
    assert done.returncode == 0, done.stderr[-2000:]
    with neuron_tools.open_profile(tmp_path / "job.nprof") as profile:
        first = advise(profile)[0]
    assert (first.rule, Path(first.place.file).name, first.place.line) == (
        rule,
        script.name,
        faulty_line(script),
    )
    assert first.gain > 0.1
    if rule == "collective_skew":
        assert first.evidence["rank"] == 1
