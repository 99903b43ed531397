"""Captures with other hardware figures, and captures that must not differ."""

from __future__ import annotations

import pytest

from tests.integration.capture.programs import TRAIN, Folder, breaches

COMPILED = (
    TRAIN
    + """
fused = torch.compile(model, backend="neuron")
for _ in range(2):
    loss = fused(inputs).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""
)
EAGER = TRAIN + "step(); step()\n"


@pytest.mark.parametrize(
    "program", [pytest.param(EAGER, marks=pytest.mark.slow), COMPILED], ids=["eager", "compiled"]
)
def test_two_captures_under_the_fixed_clock_are_identical(folder: Folder, program: str) -> None:
    for output in ("one.nprof", "two.nprof"):
        folder.capture(program, "--host-clock", "fixed", output=output)
    one, two = folder.profile("one.nprof"), folder.profile("two.nprof")
    assert one.tables() == two.tables()
    assert one.tables()["Instruction"] > 0
    for table in one.tables():
        assert one.arrow(table).equals(two.arrow(table)), table


def test_running_out_of_device_memory_names_who_holds_it_and_keeps_the_profile(folder: Folder) -> None:
    answer = folder.capture(
        TRAIN + "step()\nheld = torch.ones(200, 1000).to('neuron')\nmore = held + held\n",
        "--set",
        "hbm_bytes=1000000",
        check=False,
    )
    assert answer.returncode == 1
    said = answer.stderr
    assert "out of memory" in said.lower()
    assert "aten::empty_strided" in said
    line_that_holds_the_most = TRAIN.count("\n") + 2
    assert f"program.py:{line_that_holds_the_most}" in said
    profile = folder.profile()
    assert profile.metadata["exit_status"] == 1
    assert profile.tables()["Instruction"] > 0
    assert breaches(profile) == []


def test_twice_the_bandwidth_makes_what_it_bounds_faster(folder: Folder) -> None:
    answer = folder.python(
        """
import torch, neuron_tools
x = torch.ones(2048, 1024).to("neuron")
for settings in ("dma_bandwidth=1x", "dma_bandwidth=2x", "hbm_bandwidth=0.2x", "hbm_bandwidth=0.4x"):
    with neuron_tools.profile(settings, host_clock="fixed", settings=settings) as run:
        y = x + 1.0
    print(run.open().query("SELECT max(duration_ns) FROM Executable").column(0)[0])
"""
    )
    dma, dma_doubled, hbm, hbm_doubled = map(int, answer.stdout.split())
    assert dma_doubled < 0.7 * dma
    assert hbm_doubled < 0.7 * hbm


def test_settings_of_one_block_do_not_outlive_it(folder: Folder) -> None:
    answer = folder.python(
        """
import torch, neuron_tools
with neuron_tools.profile("run.nprof", host_clock="fixed", settings=["hbm_bytes=1000000"]):
    try:
        torch.ones(2_000_000).to("neuron")
    except torch.OutOfMemoryError:
        print("too much inside")
print(torch.ones(2_000_000).to("neuron").sum().item())
"""
    )
    assert answer.stdout.splitlines() == ["too much inside", "2000000.0"]
