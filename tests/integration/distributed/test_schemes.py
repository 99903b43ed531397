"""Each parallel scheme trains as one process does: losses, gradients and parameters are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.distributed.jobs import run, torchrun

SCRIPT = Path(__file__).parent / "schemes.py"
QUICK = ("ddp", "fsdp2", "tensor_parallel", "context_parallel_allgather", "1f1b")
LEAST_OF_ALL = 30


def outcomes(folder: Path, processes: int, *schemes: str) -> dict[str, str]:
    """What each scheme came to; all that there are if none are named."""
    done = run(torchrun(SCRIPT, processes, *schemes), folder)
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    found = {name: outcome for name, _, outcome in lines if outcome.startswith(("equal", "FAILED"))}
    assert found, done.stderr[-2000:]
    return found


def test_two_processes(tmp_path):
    assert outcomes(tmp_path, 2, *QUICK) == dict.fromkeys(QUICK, "equal")


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_all_schemes(tmp_path, processes):
    found = outcomes(tmp_path, processes)
    assert found == dict.fromkeys(found, "equal")
    assert len(found) >= LEAST_OF_ALL
