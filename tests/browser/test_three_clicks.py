"""Why is this step slow, and what do I change? From the printed address to line and gain in three clicks."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.explorer import Visit, visit
from tests.integration.analysis.planted_faults import FOLDER, Fault, read_fault
from tests.integration.distributed.jobs import torchrun

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST_CLICKS = 3
COMPILED = """
import torch

@torch.compile
def step(x, weights):
    for _ in range(4):
        x = x @ weights  # fault
    return x

x = weights = torch.zeros(1024, 1024).to("neuron")
for _ in range(12):
    x = step(x, weights)
print(float(x.sum()))
"""


def example(name: str) -> Fault:
    return read_fault(FOLDER / f"{name}.py")


def compiled() -> Fault:
    line = 1 + next(at for at, text in enumerate(COMPILED.splitlines()) if text.endswith("# fault"))
    return Fault("fp32_matmul", COMPILED, "", line)


# What is profiled, on how many ranks, and what the headline says of the cause.
QUESTIONS = {
    "eager": (example("host_synchronisation"), 1, "host waits for the device"),
    "compiled": (compiled(), 1, "fp32"),
    "nki": (example("spill"), 1, "spilled to HBM"),
    "jax": (example("fp32_matmul"), 1, "fp32"),
    "straggler": (example("straggler"), 2, "Rank 1"),
    "idle engines": (example("dma_not_overlapped"), 1, "wait for each other"),
    "compiling": (example("recompilation"), 1, "compiled 12 times"),
    "small transfers": (example("small_dma"), 1, "DMA moves pieces"),
    "collectives": (example("serial_all_reduce"), 2, "AllReduce one after the other"),
    "experts": (example("expert_imbalance"), 2, "Experts get uneven"),
    "microbatches": (example("few_microbatches"), 2, "Stages of the pipeline wait"),
    "stages": (example("uneven_stages"), 2, "stage of rank 0 works"),
}


def captured(folder: Path, fault: Fault, ranks: int) -> Path:
    script = folder / "program.py"
    script.write_text(fault.faulty)
    command = [sys.executable, str(script)] if ranks == 1 else torchrun(script, ranks)
    capture = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", "run.nprof"]
    answer = subprocess.run(
        [*capture, "--host-clock", "fixed", "--", *command], cwd=folder, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder / "run.nprof"


@contextmanager
def printed_address(profile: Path) -> Iterator[str]:
    """What `neuron-explorer` prints for a profile, while it serves."""
    command = [sys.executable, "-m", "neuron_explorer.cli", str(profile), "--no-browser", "-p", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as explorer:
        assert explorer.stdout is not None
        try:
            yield next(found[0] for line in explorer.stdout if (found := re.search(r"http://\S+", line)))
        finally:
            explorer.terminate()


class Clicks:
    """Clicks that are counted."""

    def __init__(self, explorer: Visit) -> None:
        self._explorer = explorer
        self.count = 0

    def on(self, place: str) -> None:
        """Click, and wait until the page has answered."""
        self.count += 1
        self._explorer.page.click(place)
        self._explorer.settle()


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_line_and_the_gain_are_three_clicks_away(chromium: Any, tmp_path: Path, name: str) -> None:
    fault, ranks, cause = QUESTIONS[name]
    with printed_address(captured(tmp_path, fault, ranks)) as url, visit(chromium, url) as explorer:
        clicks, page = Clicks(explorer), explorer.page
        told = page.inner_text(".headline")
        assert re.search(cause, told)
        assert f"program.py:{fault.line}" in told
        clicks.on(".headline >> text=What to change")
        finding = page.locator(".panel-advice .finding >> nth=0")
        assert re.search(
            r"\b[1-9]\d*(\.\d+)? (ns|us|µs|ms|s)\b", finding.locator(".gain >> nth=0").inner_text()
        )
        assert len(finding.locator("p >> nth=1").inner_text()) > len("Change it.")
        clicks.on(".panel-advice .finding >> nth=0 >> a[href*='/source']")
        chosen = page.locator(".panel-source tr.is-chosen, .panel-source tr.chosen")
        chosen.first.wait_for()
        assert str(fault.line) in chosen.first.inner_text()
        assert clicks.count <= MOST_CLICKS
        assert explorer.complaints == []
