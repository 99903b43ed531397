"""PyTorch's own distributed tests on this back end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.distributed.jobs import run, torchrun

SCRIPT = Path(__file__).parent / "pytorch_suite.py"
LEAST_SHARE = 0.95


def results(folder: Path, *patterns: str) -> dict[str, str]:
    done = run(torchrun(SCRIPT, 4, *patterns), folder)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"test"')]
    assert rows, done.stderr[-2000:]
    return {row["test"]: row["outcome"] for row in rows}


@pytest.mark.slow
def test_nearly_all_that_can_run_here_pass(tmp_path):
    ran = {name: outcome for name, outcome in results(tmp_path).items() if not outcome.startswith("skip")}
    failed = {name: outcome for name, outcome in ran.items() if outcome != "pass"}
    assert len(ran) > 80
    assert len(failed) <= (1 - LEAST_SHARE) * len(ran), failed
