"""Where a library does all the work, the device's time stands at the user's line that called it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import neuron_tools
from neuron_explorer.api.source_costs import read_source_costs
from neuron_profile.analysis.hotspots import find_hotspots

FOLDER = Path(__file__).parents[3] / "examples" / "frameworks"
SCRIPTS = {
    "transformers_loop": ("output = model(", ()),
    "accelerate_loop": ("output = model(", ("accelerate",)),
    "hf_trainer": ("trainer.train()", ("accelerate",)),
    "lightning_trainer": ("return self.model(", ("lightning",)),
}
"""Text of the hottest line, and what is needed beside transformers."""
LEAST_SHARE = 0.95

pytestmark = pytest.mark.slow


def test_every_script_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(SCRIPTS)


@pytest.fixture(scope="module", params=SCRIPTS)
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A script and its profile."""
    for package in ("transformers", *SCRIPTS[request.param][1]):
        pytest.importorskip(package)
    script = FOLDER / f"{request.param}.py"
    folder = tmp_path_factory.mktemp(request.param)
    _run(folder, "capture", "-o", "run.nprof", "--host-clock", "fixed", "--", sys.executable, str(script))
    return script, folder / "run.nprof"


def _run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "neuron_profile.cli", *arguments]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-2000:]
    return answer.stdout


def _hottest(script: Path) -> int:
    text = SCRIPTS[script.stem][0]
    return 1 + next(number for number, line in enumerate(script.read_text().splitlines()) if text in line)


def test_nearly_all_device_time_is_on_lines_of_the_script(captured: tuple[Path, Path]) -> None:
    script, path = captured
    with neuron_tools.open_profile(path) as profile:
        hotspots = find_hotspots(profile)
    own = sum(line.cost.device_ns for line in hotspots.lines if line.place.file == str(script))
    assert hotspots.device_ns > 0
    assert own >= LEAST_SHARE * hotspots.device_ns
    assert hotspots.lines[0].place.line == _hottest(script)


def test_the_heat_of_the_editor_is_that_of_the_own_code(captured: tuple[Path, Path]) -> None:
    script, path = captured
    with neuron_tools.open_profile(path) as profile:
        costs = read_source_costs(profile)
    heat = {line: work.device_ns for line, work in costs.files[str(script)].own_code.items()}
    assert sum(heat.values()) >= LEAST_SHARE * costs.device_ns
    assert max(heat, key=lambda line: heat[line]) == _hottest(script)


def test_the_summary_begins_with_the_hottest_line(captured: tuple[Path, Path]) -> None:
    script, path = captured
    text = _run(path.parent, "view", str(path), "--output-format", "summary-text")
    _, _, lines = text.partition("Source line")
    places = [word for word in lines.split() if ".py:" in word]
    assert places[0].endswith(f"{script.name}:{_hottest(script)}")


def test_every_finding_with_a_line_is_at_the_script(captured: tuple[Path, Path]) -> None:
    script, path = captured
    findings: list[dict[str, Any]] = json.loads(_run(path.parent, "advise", str(path), "--json"))["findings"]
    placed = [found["place"] for found in findings if found["place"]["file"]]
    assert placed
    assert {place["file"] for place in placed} == {str(script)}
    device = max(findings, key=lambda found: found["device_gain_ns"] or 0)
    assert device["place"]["line"] == _hottest(script)
