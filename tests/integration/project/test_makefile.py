import re
import shutil
import subprocess

import pytest

from tests.integration.project.checkout import ROOT

TARGETS = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")


def make(*arguments):
    result = subprocess.run(
        ["make", "--no-print-directory", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_can_be_planned(target):
    assert make("-n", target).strip()


def test_help_lists_every_target_but_itself_first():
    listed = re.findall(r"^make (\S+) +\S", make("help"), re.MULTILINE)
    assert listed == TARGETS


def test_a_fresh_checkout_installs_before_it_runs(tmp_path):
    lines = make("-n", "test", f"VENV={tmp_path}/venv").splitlines()
    order = ["bootstrap.sh runtime", "bootstrap.sh development", "device.build", "test.sh"]
    places = [next(number for number, line in enumerate(lines) if part in line) for part in order]
    assert places == sorted(places)


def test_a_second_run_installs_nothing(tmp_path):
    for name in (".runtime", ".development", ".device", ".distributed"):
        (tmp_path / name).touch()
    plan = make("-n", "test", f"VENV={tmp_path}")
    assert "bootstrap" not in plan
    assert "device.build" not in plan


@pytest.mark.parametrize(
    "script", [*sorted((ROOT / "scripts").glob("*.sh")), ROOT / ".ci/run"], ids=lambda path: path.name
)
def test_shell_scripts_parse(script):
    assert subprocess.run(["bash", "-n", script]).returncode == 0
