"""`neuron-profile scale` on frameworks' scripts: two ranks predicted by one, against two that run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import neuron_tools
from neuron_profile.analysis.job_step import JobStep, measure_job_step

SCRIPTS = Path(__file__).parent / "scripts"
COMMAND = (sys.executable, "-m", "neuron_profile.cli")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
PREDICTION_TOLERANCE = 0.03
MANY = 64
PACKAGES = {
    "trainer": ("transformers", "tokenizers", "accelerate"),
    "fsdp2": ("transformers", "tokenizers", "accelerate"),
    "zero": ("deepspeed",),
}
"""What each script needs."""

pytestmark = pytest.mark.slow


def scaled(script: Path, folder: Path) -> dict[int, dict[str, Any]]:
    """What `scale` says of two ranks and of many, by ranks."""
    degrees = ("--dp", f"2,{MANY}", "-o", str(folder / "scale"), "--json")
    answer = subprocess.run(
        [*COMMAND, "scale", *degrees, "--", sys.executable, str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr[-4000:]
    return {row["ranks"]: row for row in json.loads(answer.stdout)["result"]}


def ran(script: Path, folder: Path) -> JobStep:
    """The step of two ranks that run."""
    profile = folder / "run.nprof"
    capture = ("capture", "--host-clock", "fixed", "-o", str(profile), "--")
    command = [*COMMAND, *capture, sys.executable, *TORCHRUN, str(script)]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-4000:]
    with neuron_tools.open_profile(profile) as opened:
        step = measure_job_step(opened)
    assert step is not None
    return step


@pytest.mark.parametrize("script", PACKAGES)
def test_scale_predicts_two_ranks_of_a_frameworks_script(script: str, tmp_path: Path) -> None:
    for needed in PACKAGES[script]:
        pytest.importorskip(needed, exc_type=ImportError)
    path = SCRIPTS / f"{script}.py"
    predicted, found = scaled(path, tmp_path), ran(path, tmp_path)
    assert set(predicted) == {2, MANY}
    assert all(row["fits"] for row in predicted.values()), predicted
    two = predicted[2]
    assert two["step_ns"] == pytest.approx(found.step_ns, rel=PREDICTION_TOLERANCE)
    assert two["peak_bytes"] == pytest.approx(found.peak_bytes, rel=PREDICTION_TOLERANCE)
    assert predicted[MANY]["exposed_ns"] > two["exposed_ns"]
