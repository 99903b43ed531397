"""Every page of the Explorer on a real capture and on ten million spans, in a real browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import synthetic_profile
from neuron_explorer.library import profile_id
from neuron_explorer.pages import pages
from tests.browser.explorer import LARGEST_CALLBACK_BYTES, served, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PATHS = [page.path for page in pages()]
EXAMPLE = Path(__file__).parents[2] / "examples" / "train_transformer.py"
SMALL = ("--steps", "2", "--width", "64", "--layers", "2", "--length", "32", "--batch", "2")
LARGE_SPANS = 10_000_000
ANALYSES_MS = 600_000  # a hierarchy of ten million spans is summed up in the background meanwhile


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real capture of a training script."""
    path = tmp_path_factory.mktemp("capture") / "transformer.nprof"
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", str(path), "--", sys.executable]
    subprocess.run([*command, str(EXAMPLE), *SMALL], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten million spans."""
    path = tmp_path_factory.mktemp("large") / "large.nprof"
    synthetic_profile.write(path, LARGE_SPANS)
    return path


@pytest.mark.parametrize("name", ["capture", "large"])
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
