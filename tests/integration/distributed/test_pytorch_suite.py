"""PyTorch's own distributed tests on this back end.

Those of c10d and DTensor are not in PyTorch's wheel: `NEURON_TOOLS_PYTORCH_TESTS` names the folder
`test/distributed` of its sources.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.integration.distributed.jobs import run, torchrun

HERE = Path(__file__).parent
SOURCES = os.environ.get("NEURON_TOOLS_PYTORCH_TESTS", "")
LEAST_SHARE = 0.95


def results(folder: Path, script: str, *arguments: str) -> dict[str, str]:
    done = run(torchrun(HERE / script, 4, *arguments), folder)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"test"')]
    assert rows, done.stderr[-2000:]
    return {row["test"]: row["outcome"] for row in rows}


def check(found: dict[str, str], at_least: int) -> None:
    """Nearly all tests that can run here pass."""
    ran = {name: outcome for name, outcome in found.items() if not outcome.startswith("skip")}
    failed = {name: outcome for name, outcome in ran.items() if outcome != "pass"}
    assert len(ran) > at_least
    assert len(failed) <= (1 - LEAST_SHARE) * len(ran), failed


@pytest.mark.slow
def test_those_of_the_wheel(tmp_path):
    check(results(tmp_path, "pytorch_suite.py"), 80)


@pytest.mark.slow
@pytest.mark.skipif(not SOURCES, reason="NEURON_TOOLS_PYTORCH_TESTS names no sources of PyTorch's tests")
def test_those_of_c10d(tmp_path):
    check(results(tmp_path, "c10d_suite.py", SOURCES), 80)


@pytest.mark.slow
@pytest.mark.skipif(not SOURCES, reason="NEURON_TOOLS_PYTORCH_TESTS names no sources of PyTorch's tests")
def test_those_of_dtensor(tmp_path):
    folders = (Path(SOURCES) / name for name in ("tensor", "_tensor"))
    folder = next(each for each in folders if (each / "test_dtensor.py").exists())
    check(results(tmp_path, "dtensor_suite.py", str(folder)), 80)
