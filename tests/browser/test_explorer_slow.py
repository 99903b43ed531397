"""Every page of the Explorer in a real browser: real captures, real traces of others, ten million spans."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import synthetic_profile
from neuron_explorer.library import profile_id
from neuron_explorer.pages import pages
from neuron_tools.profile.importers import import_traces
from tests.browser.axe import serious_breaches
from tests.browser.explorer import LARGEST_CALLBACK_BYTES, served, visit
from tests.browser.timeline_page import IS_SHARP, TIMELINE
from tests.fixtures import foreign_traces

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PATHS = [page.path for page in pages()]
EXAMPLE = Path(__file__).parents[2] / "examples" / "train_transformer.py"
SMALL = ("--steps", "2", "--width", "64", "--layers", "2", "--length", "32", "--batch", "2")
LARGE_SPANS = 10_000_000
STRAGGLER = EXAMPLE.parent / "faults" / "straggler.py"
TRACED = """
import torch
from torch.profiler import ProfilerActivity, profile

layer = torch.nn.TransformerEncoderLayer(64, 4, batch_first=True)
with profile(activities=[ProfilerActivity.CPU], with_stack=True, with_modules=True) as run:
    for _ in range(3):
        layer(torch.randn(4, 32, 64)).sum().backward()
run.export_chrome_trace("trace.json")
"""
ANALYSES_MS = 600_000  # a hierarchy of ten million spans is summed up in the background meanwhile


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real capture of a training script."""
    path = tmp_path_factory.mktemp("capture") / "transformer.nprof"
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", str(path), "--", sys.executable]
    subprocess.run([*command, str(EXAMPLE), *SMALL], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def collectives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real capture of two ranks, of which the second comes late."""
    path = tmp_path_factory.mktemp("collectives") / "straggler.nprof"
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed"]
    command += ["-o", str(path), "--"]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    subprocess.run([*command, *launcher, str(STRAGGLER)], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def torch_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real trace of torch.profiler, with Python stacks."""
    folder = tmp_path_factory.mktemp("torch")
    script = folder / "script.py"
    script.write_text(TRACED)
    subprocess.run([sys.executable, str(script)], check=True, capture_output=True, cwd=folder)
    return import_traces([folder / "trace.json"], folder / "torch.nprof").path


@pytest.fixture(scope="module")
def device_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What AWS's neuron-profile writes of a device."""
    folder = tmp_path_factory.mktemp("aws")
    (folder / "aws.json").write_text(json.dumps(foreign_traces.device_profile()))
    return import_traces([folder / "aws.json"], folder / "aws.nprof").path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten million spans."""
    path = tmp_path_factory.mktemp("large") / "large.nprof"
    synthetic_profile.write(path, LARGE_SPANS)
    return path


@pytest.mark.parametrize("name", ["capture", "collectives", "torch_trace", "device_profile", "large"])
def test_every_page_shows_it_without_complaint(
    chromium: Any, request: Any, tmp_path: Path, monkeypatch: Any, name: str
) -> None:
    monkeypatch.setattr("tests.browser.explorer.WAIT_MS", ANALYSES_MS)
    profile = request.getfixturevalue(name)
    with served([profile], tmp_path) as url, visit(chromium, url) as found:
        for path in PATHS:
            found.go(f"{path}?profile={profile_id(profile)}")
            assert found.page.query_selector(".state.error") is None, path
        assert found.complaints == []
        assert max(found.callback_bytes) <= LARGEST_CALLBACK_BYTES


def test_time_and_source_of_a_capture_are_on_the_pages(chromium: Any, capture: Path, tmp_path: Path) -> None:
    profile = profile_id(capture)
    with served([capture], tmp_path) as url, visit(chromium, url) as found:
        found.go(f"/source?profile={profile}")
        found.page.wait_for_selector("table.code tr.costly >> text=self.contract")
        found.page.click("tr.costly button.line-button >> nth=0")
        found.page.wait_for_selector("text=side by side")
        found.page.wait_for_selector("#source-detail table >> text=Tensor")
        found.go(f"/memory?profile={profile}")
        found.page.wait_for_selector("text=SBUF addresses over one execution")
        found.go(f"/advice?profile={profile}")
        found.page.wait_for_selector(".finding .gain")


def test_ranks_that_wait_for_each_other_are_on_the_page(
    chromium: Any, collectives: Path, tmp_path: Path
) -> None:
    with served([collectives], tmp_path) as url, visit(chromium, url) as found:
        found.go(f"/communication?profile={profile_id(collectives)}")
        waiting = "td:nth-child(5)"
        rows = [f"[aria-label='By rank'] tbody tr:has-text('rank {rank}') {waiting}" for rank in (0, 1)]
        in_time, late = (float(found.page.get_attribute(row, "data-value")) for row in rows)
        assert in_time > 2 * late
        found.page.click("[aria-label='By source line'] a >> nth=0")
        found.page.wait_for_selector("table.code tr.chosen")
        found.go(f"/timeline?profile={profile_id(collectives)}")
        found.page.wait_for_function(IS_SHARP)
        tracks = found.page.evaluate(f"{TIMELINE}.ready.then(({{ tracks }}) => tracks)")
        ranks = {track["headings"][0].partition(":")[0] for track in tracks if track["name"] == "MFU"}
        assert ranks == {"rank 0", "rank 1"}
        assert found.complaints == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_breach_on_a_capture(
    chromium: Any, capture: Path, tmp_path: Path, theme: str
) -> None:
    breaches = {}
    with served([capture], tmp_path) as url, visit(chromium, url, color_scheme=theme) as found:
        for path in PATHS:
            found.go(f"{path}?profile={profile_id(capture)}")
            breaches[path] = serious_breaches(found.page)
    assert not any(breaches.values()), breaches
