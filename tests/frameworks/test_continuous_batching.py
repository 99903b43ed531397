"""transformers' continuous batching, unchanged: the CPU's tokens, and its requests in the profile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import neuron_tools
from neuron_profile.analysis.serving import measure_serving

SCRIPT = Path(__file__).parent / "transformers_scripts" / "continuous_batching.py"
CAPTURE = ("-m", "neuron_profile.cli", "capture", "-o", "run.nprof", "--host-clock", "fixed", "--")
REQUESTS, TOKENS = 5, 6

pytestmark = pytest.mark.slow


def tokens(folder: Path, *command: str) -> list[list[int]]:
    """What the script says."""
    answer = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith("tokens ")]
    found: list[list[int]] = json.loads(line.removeprefix("tokens"))
    return found


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    """transformers is imported where these tests run, not wherever they are collected."""
    pytest.importorskip("transformers.generation.continuous_batching")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[list[int]]:
    return tokens(tmp_path_factory.mktemp("cpu"), str(SCRIPT), "--cpu")


def test_it_has_the_cpus_tokens(expected: list[list[int]], tmp_path: Path) -> None:
    assert [len(answer) for answer in expected] == [TOKENS] * REQUESTS
    assert tokens(tmp_path, str(SCRIPT)) == expected


@pytest.mark.parametrize("options", [[], ["--manager"]], ids=["batch", "manager"])
def test_captured_it_tells_its_requests(
    options: list[str], expected: list[list[int]], tmp_path: Path
) -> None:
    assert tokens(tmp_path, *CAPTURE, sys.executable, str(SCRIPT), *options) == expected
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        serving = measure_serving(profile)
    assert serving is not None
    assert [request.tokens for request in serving.requests] == [TOKENS] * REQUESTS
    assert any(request.queue_ns for request in serving.requests), "a step takes fewer than all prompts"
    assert all(request.prefill_ns and request.per_token_ns for request in serving.requests)
