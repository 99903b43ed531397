"""The page of a server's requests in a real browser: from a part of a lane to its time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuron_explorer.library import profile_id
from neuron_tools.profile.writer import ProfileWriter
from tests.browser.axe import serious_breaches
from tests.browser.explorer import LARGEST_CALLBACK_BYTES, Visit, served, visit
from tests.unit.neuron_profile.serving_tables import BATCHED, busy, host_spans
from tests.unit.neuron_profile.tiny_profile import TINY_TABLES

pytestmark = pytest.mark.browser
# The second decode iteration of the first lane: iterations, queues and prefills are drawn before.
CLICK_DECODE = """() => {
    const bar = [...document.querySelectorAll("#requests-lanes .point path")].at(-2);
    const { x, y, width, height } = bar.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
}"""


def written(path: Path, *rows: Any) -> Path:
    with ProfileWriter(path, {"target": "trn2", "command": ["python", "serve.py"]}) as writer:
        for table, columns in {**TINY_TABLES, **host_spans(*rows)}.items():
            writer.append(table, dict(columns))
    return path


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("serving") / "serve.nprof", *BATCHED)


@pytest.fixture(scope="module")
def busy_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("serving") / "busy.nprof", *busy(400, 16, 60))


@pytest.fixture(scope="module", params=["light", "dark"])
def explorer(
    chromium: Any, profile: Path, busy_profile: Path, tmp_path_factory: Any, request: Any
) -> Iterator[Visit]:
    store = tmp_path_factory.mktemp("store")
    with (
        served([profile, busy_profile], store) as url,
        visit(chromium, url, color_scheme=request.param) as found,
    ):
        yield found


def test_the_page_is_reached_by_the_navigation_without_complaint(explorer: Visit, profile: Path) -> None:
    explorer.go(f"/overview?profile={profile_id(profile)}&scope=all")
    explorer.page.click("nav >> text=Requests")
    explorer.page.wait_for_selector("h1 >> text=Requests")
    explorer.settle()
    assert explorer.complaints == []
    assert explorer.page.query_selector(".state.error") is None
    assert max(explorer.callback_bytes) <= LARGEST_CALLBACK_BYTES
    assert serious_breaches(explorer.page) == []


def test_many_requests_are_a_small_answer(explorer: Visit, busy_profile: Path) -> None:
    explorer.begin()
    explorer.go(f"/requests?profile={profile_id(busy_profile)}&scope=all")
    assert explorer.page.locator("section[aria-label=Requests] tbody tr").count() > 50
    assert explorer.complaints == []
    assert 20_000 < max(explorer.callback_bytes) <= LARGEST_CALLBACK_BYTES


def test_a_part_of_a_lane_leads_to_its_time_in_the_workspace(explorer: Visit, profile: Path) -> None:
    explorer.go(f"/requests?profile={profile_id(profile)}&scope=all")
    explorer.page.mouse.click(*explorer.page.evaluate(CLICK_DECODE))
    explorer.page.wait_for_selector(".ws-dock")
    explorer.wait_for_query("start_ns=505&end_ns=706")


def test_a_request_leads_to_its_time_and_its_line(explorer: Visit, profile: Path) -> None:
    explorer.go(f"/requests?profile={profile_id(profile)}&scope=all")
    explorer.page.click("td a >> text=serve.py:5")
    explorer.page.wait_for_selector("h1 >> text=Source")
    explorer.wait_for_query("line=5")
    explorer.go(f"/requests?profile={profile_id(profile)}&scope=all")
    explorer.page.click("section[aria-label=Requests] tbody a >> nth=0")
    explorer.page.wait_for_selector(".ws-dock")
    explorer.wait_for_query("start_ns=100&end_ns=710")
