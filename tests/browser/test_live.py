"""The live view: the workspace follows a capture while it runs, and ends where a finished profile begins."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from neuron_explorer.library import profile_id
from tests.browser.explorer import WAIT_MS, served, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Three steps for each line that it is told, so that the test decides when the capture goes on.
PROGRAM = """
import sys
import torch

model = torch.nn.Linear(256, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.ones(64, 256).to("neuron")
print("ready", flush=True)
for _ in sys.stdin:
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    torch.neuron.synchronize()
    print("stepped", flush=True)
"""
IS_LIVE = """() => {
    const told = document.querySelector(".ws-live:not([hidden])")?.textContent ?? "";
    return /Live|Recording|new step/.test(told);
}"""
SHOWN_STEPS = """(least) => document.querySelectorAll("#steps a.step:not(.all)").length >= least"""
HAVE_ROOM = """() => [...document.querySelectorAll("#steps a.step")].every(
    (step) => step.scrollWidth <= step.clientWidth)"""
IS_OVER = """() => document.querySelector(".ws-live")?.hidden === true"""


@contextmanager
def capturing(folder: Path) -> Iterator[Any]:
    """A capture that waits to be told to go on; what it makes is `run.nprof`.

    Its clock is the measured one: under the fixed one, blocks are written when they are full.
    """
    (folder / "program.py").write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "neuron_profile.cli",
        "capture",
        "-o",
        "run.nprof",
    ]
    with subprocess.Popen(
        [*command, "--", sys.executable, "program.py"],
        cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as capture:  # fmt: skip
        try:
            assert capture.stdout is not None
            assert any(line.startswith("ready") for line in capture.stdout)
            yield capture
        finally:
            capture.kill()


def go_on(capture: Any) -> None:
    """Three steps more."""
    capture.stdin.write("\n")
    capture.stdin.flush()
    assert any(line.startswith("stepped") for line in capture.stdout)


def test_the_workspace_follows_a_capture_to_its_end(chromium: Any, tmp_path: Path) -> None:
    with capturing(tmp_path) as capture:
        go_on(capture)
        run = tmp_path / "run.nprof"
        with served([run], tmp_path / "store") as url, visit(chromium, url) as explorer:
            page = explorer.page
            explorer.page.goto(f"{explorer.origin}/workspace?profile={profile_id(run)}")
            page.wait_for_function(IS_LIVE, timeout=WAIT_MS)
            page.wait_for_function(SHOWN_STEPS, arg=2, timeout=WAIT_MS)
            first = page.evaluate("() => location.search")
            for _ in range(3):
                go_on(capture)
            page.wait_for_function(SHOWN_STEPS, arg=8, timeout=WAIT_MS)
            assert page.evaluate(HAVE_ROOM), "the time of a step is cut off"
            page.wait_for_function("(first) => location.search !== first", arg=first, timeout=WAIT_MS)
            capture.stdin.close()
            assert capture.wait() == 0
            page.wait_for_function(IS_OVER, timeout=WAIT_MS)
            explorer.settle()
            assert page.locator(".headline").inner_text()
            assert explorer.complaints == []
