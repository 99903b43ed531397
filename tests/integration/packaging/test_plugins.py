"""The package of `examples/plugins`, installed from outside: each of its parts is found and works."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.integration.project.checkout import ROOT

SPANS = "# stopwatch\n0 1000 load\n1000 5000 compute\n"
DRAW_PAGE = """
import json, sys
from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.page import View
from neuron_explorer.pages import find_page
from pathlib import Path
with ProfileLibrary([Path(sys.argv[1])]) as library:
    view = View(library, Analyses(library), Address("/longest", profile_id(Path(sys.argv[1]))))
    print(json.dumps(find_page("/longest").layout(view), default=lambda part: part.to_plotly_json()))
"""
OPTIMISE = """
from neuron_tools.compiler.cached import FURTHER_PASSES
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.passes.pipeline import optimise
print(FURTHER_PASSES.foreign(), [transform.__name__ for _, transform in FURTHER_PASSES.load_all()])
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder into which the package was installed; its modules stand nowhere else."""
    source = shutil.copytree(ROOT / "examples" / "plugins", tmp_path_factory.mktemp("source") / "plugins")
    target = tmp_path_factory.mktemp("installed")
    command = "pip install --quiet --no-deps --no-build-isolation --no-index --target"
    subprocess.run([sys.executable, "-m", *command.split(), target, source], check=True, capture_output=True)
    return target


@pytest.fixture
def run(installed, tmp_path):
    def run_module(*arguments, **variables):
        folders = [installed, *(ROOT / folder for folder in ("", "profiler", "explorer_ui", "monitor"))]
        path = os.pathsep.join(map(str, folders))
        return subprocess.run(
            [sys.executable, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": path, **variables},
        )  # fmt: skip

    return run_module


@pytest.fixture
def profile(run, tmp_path):
    """A profile that the importer from outside made."""
    (tmp_path / "times.txt").write_text(SPANS)
    done = run("-m", "neuron_profile.cli", "import", "times.txt", "-o", "times.nprof")
    assert done.returncode == 0, done.stderr
    return tmp_path / "times.nprof"


def test_importer_exporter_and_analysis_work_on_the_command_line(run, profile, tmp_path):
    done = run("-m", "neuron_profile.cli", "analyze", "longest", profile, "--json")
    assert json.loads(done.stdout)["result"][0] == {"name": "compute", "duration_ns": 4000}, done.stderr
    done = run("-m", "neuron_profile.cli", "view", profile, "--output-format", "markdown")
    assert done.returncode == 0, done.stderr
    assert "| TraceSpan | 2 |" in (tmp_path / "times.md").read_text()


def test_the_advice_rule_finds(run, profile):
    done = run("-m", "neuron_profile.cli", "advise", profile, "--json")
    assert "empty_profile" in done.stdout, done.stderr


def test_the_explorer_has_the_page(run, profile):
    done = run("-c", DRAW_PAGE, profile)
    assert "compute: 4,000 ns" in done.stdout, done.stderr


def test_the_compiler_has_the_pass_and_caches_know_of_it(run):
    done = run("-c", OPTIMISE)
    assert "neuron-plugins-example 0.1.0" in done.stdout, done.stderr
    assert "count_operations" in done.stdout


def test_the_monitor_has_the_sink(run, tmp_path):
    reports = tmp_path / "reports.jsonl"
    done = run(
        "-m",
        "neuron_monitor.cli",
        "--sink",
        "file",
        "--count",
        "1",
        NEURON_REPORTS=str(reports),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    (line,) = reports.read_text().splitlines()
    assert json.loads(line)["system_data"]["memory_info"]["memory_total_bytes"] > 0


def test_a_part_that_cannot_be_loaded_says_so_in_one_sentence(run, installed, profile, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(next(installed.glob("*.dist-info")), broken / "broken_plugins-1.0.dist-info")
    metadata = broken / "broken_plugins-1.0.dist-info"
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugins\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[neuron_explorer.pages]\nlost = misspelt.page:PAGE\n")
    done = run("-c", f"import sys; sys.path.insert(0, {str(broken)!r})\n{DRAW_PAGE}", profile)
    assert "compute: 4,000 ns" in done.stdout, done.stderr
    assert done.stderr.strip() == (
        "The page 'lost' of broken-plugins 1.0 cannot be loaded (ModuleNotFoundError: No module named "
        "'misspelt'): update or remove that package."
    )
