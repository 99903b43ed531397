"""Each parallel scheme trains as one process does: losses and parameters are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.distributed.jobs import run, torchrun

SCRIPT = Path(__file__).parent / "schemes.py"
COMMON = (
    "ddp", "ddp_static", "ddp_unused", "fsdp1", "fsdp2", "fsdp2_checkpointed", "fsdp2_mixed", "hsdp",
    "tensor_parallel", "sequence_parallel", "two_dimensional", "gpipe", "1f1b", "checkpointed",
)  # fmt: skip
COMPILED = ("compiled_ddp", "compiled_tensor_parallel")


def outcomes(folder: Path, processes: int, schemes: tuple[str, ...]) -> dict[str, str]:
    """What each scheme came to."""
    done = run(torchrun(SCRIPT, processes, *schemes), folder)
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    found = {name: outcome for name, _, outcome in lines if name in schemes}
    assert found, done.stderr[-2000:]
    return found


def test_two_processes(tmp_path):
    schemes = ("ddp", "fsdp2", "tensor_parallel", "1f1b")
    assert outcomes(tmp_path, 2, schemes) == dict.fromkeys(schemes, "equal")


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_all_schemes(tmp_path, processes):
    assert outcomes(tmp_path, processes, COMMON) == dict.fromkeys(COMMON, "equal")


@pytest.mark.slow
def test_compiled(tmp_path):
    assert outcomes(tmp_path, 2, COMPILED) == dict.fromkeys(COMPILED, "equal")
