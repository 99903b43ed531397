import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.project.checkout import ROOT


@pytest.fixture(scope="module")
def environment():
    """The tests' own Python first on the path, as `make` puts `.venv`'s."""
    scripts = Path(sys.executable).parent
    return {
        **os.environ,
        "PATH": f"{scripts}:{os.environ['PATH']}",
        "STEPS": "1",
        "VENV": str(scripts.parent),
    }


@pytest.fixture(scope="module")
def demo(environment, tmp_path_factory):
    """The demo with one step: what it printed, and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    result = subprocess.run(
        [ROOT / "scripts/demo.sh", folder],
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout, folder


def test_both_captures_train_alike(demo):
    losses = re.findall(r"^step 0  loss (\S+)$", demo[0], re.MULTILINE)
    assert len(losses) == 2
    assert float(losses[0]) == pytest.approx(float(losses[1]), rel=1e-4)


def test_both_summaries_stand_side_by_side_with_the_costliest_lines(demo):
    heading = re.search(r"eager\.nprof +compiled\.nprof\n", demo[0])
    assert heading
    rows = demo[0][heading.end() :]
    assert re.search(r"^Device time +\S+ \S+ +\S+ \S+$", rows, re.MULTILINE)
    assert len(re.findall(r"^\S*train_transformer\.py:\d+ ", rows, re.MULTILINE)) >= 5


def test_the_profiles_keep_the_rules(demo, environment):
    for name in ("eager", "compiled"):
        result = subprocess.run(
            ["neuron-profile", "verify", demo[1] / f"{name}.nprof"],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_commands_that_it_names_work(demo, environment):
    named = re.findall(r"^[A-Z][^:\n]*: +(\S*neuron-profile .*)$", demo[0], re.MULTILINE)
    assert len(named) == 4
    for line in named[1:]:  # the first serves the browser until it is stopped
        result = subprocess.run(shlex.split(line), cwd=ROOT, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr


def test_it_replaces_its_own_profiles_and_nothing_else(environment, tmp_path):
    (tmp_path / "eager.nprof").mkdir()
    (tmp_path / "mine.nprof").mkdir()
    without_commands = {**environment, "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        [ROOT / "scripts/demo.sh", tmp_path], env=without_commands, capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "the capture failed" in result.stderr
    assert not (tmp_path / "eager.nprof").exists()
    assert (tmp_path / "mine.nprof").exists()
