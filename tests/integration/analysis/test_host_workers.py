"""The host's calls of a capture: of the program's own threads and of the processes that load its data."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import neuron_tools
from neuron_explorer.figures.icicle import icicle_figure
from neuron_explorer.pages.host import call_part
from neuron_explorer.theme import LIGHT
from neuron_profile.analysis.host_stacks import HostCall, call_rows, host_calls

SCRIPT = Path(__file__).parents[3] / "examples/faults/host/too_few_workers.py"
SLOW = "__getitem__"


def below(call: HostCall) -> Iterator[HostCall]:
    """A call with all that it calls."""
    yield call
    for child in call.children.values():
        yield from below(child)


def slow_calls(root: HostCall | None, thread: str) -> list[HostCall]:
    """The slow function's calls in one thread."""
    assert root is not None
    return [call for call in below(root.child(thread)) if call.name.endswith(SLOW)]


@pytest.mark.slow
def test_processes_that_load_data_have_their_calls_in_each_range(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", "run.nprof", "--"]
    subprocess.run([*command, sys.executable, str(SCRIPT)], cwd=tmp_path, check=True, capture_output=True)
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        root = host_calls(profile)
        start_ns, end_ns = profile.query(
            "SELECT min(start_ts) AS a, max(end_ts) AS b FROM HostSample WHERE worker_idx > 0"
        ).to_pylist()[0].values()  # fmt: skip
        with profile.slice(start_ns, (start_ns + end_ns) // 2) as half:
            first_half = host_calls(half)
    assert root is not None
    (whole,) = slow_calls(root, "worker 1")
    (part,) = slow_calls(first_half, "worker 1")
    assert Path(whole.file).name == SCRIPT.name
    assert whole.kind == "data_loading"
    assert 0 < part.time_ns < whole.time_ns
    assert 0 < whole.idle_ns <= whole.time_ns  # the device waits for it
    for while_idle in (False, True):
        parts = [call_part(row, while_idle=while_idle) for row in call_rows(root, 400, while_idle=while_idle)]
        drawn = icicle_figure(parts, LIGHT, depth=9).to_plotly_json()["data"][0]["labels"]
        assert any(SLOW in label for label in drawn)
