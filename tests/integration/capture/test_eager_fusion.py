"""Eager operations that wait for the device run as one execution; the profile shows them and what ran."""

from __future__ import annotations

import filecmp
from pathlib import Path

import pytest

from tests.integration.capture.programs import Folder, breaches, rows

PROGRAM = """
import torch
torch.manual_seed(0)
inputs, weight = torch.randn(512, 512), torch.randn(512, 512)
x, w = inputs.to("neuron"), weight.to("neuron").requires_grad_()

class Body(torch.nn.Module):
    def forward(self, x):
        y = x @ w
        y = torch.tanh(y)
        return y * 0.5 - y.mean(-1, keepdim=True)

model = Body()
for step in range(2):
    w.grad = None
    loss = model(x).square().sum()
    loss.backward()
    print(loss.item().hex(), w.grad.cpu().sum().item().hex())
"""
MODES = ("off", "auto", "on")
COUNTS = "SELECT kind, sum(execution_count)::BIGINT FROM Executable GROUP BY kind ORDER BY kind"
BUSY = "SELECT sum(execution_end_ts - execution_start_ts)::BIGINT, count(*) FROM ExecutionInfo"


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, dict[str, str]]:
    """The program captured in each mode, and what it printed."""
    folder = Folder(tmp_path_factory.mktemp("fusion"))
    said = {}
    for mode in MODES:
        options = ("--host-clock", "fixed", "--eager-fusion", mode)
        said[mode] = folder.capture(PROGRAM, *options, output=f"{mode}.nprof").stdout
    return folder, said


def test_values_are_the_same_in_each_mode(captured: tuple[Folder, dict[str, str]]) -> None:
    _, said = captured
    assert said["off"] == said["auto"] == said["on"] != ""


@pytest.mark.parametrize("mode", MODES)
def test_the_profile_holds_all_rules(mode: str, captured: tuple[Folder, dict[str, str]]) -> None:
    profile = captured[0].profile(f"{mode}.nprof")
    assert breaches(profile) == []
    assert rows(profile, "SELECT * FROM Warning") == []
    assert ("fused" in dict(rows(profile, COUNTS))) == (mode != "off")


def test_fused_is_never_slower(captured: tuple[Folder, dict[str, str]]) -> None:
    busy, counts = zip(*(rows(captured[0].profile(f"{mode}.nprof"), BUSY)[0] for mode in MODES))
    assert busy[0] > busy[1] >= busy[2]
    assert counts[0] > counts[1] >= counts[2]


def test_both_levels_are_there(captured: tuple[Folder, dict[str, str]]) -> None:
    folder, _ = captured
    asked = "SELECT count(*) FROM HostSpan WHERE kind = 'dispatch' AND name LIKE 'aten::%'"
    off, on = folder.profile("off.nprof"), folder.profile("on.nprof")
    assert rows(off, asked) == rows(on, asked)
    fused = rows(on, "SELECT hlo_operation_count, execution_count FROM Executable WHERE kind = 'fused'")
    assert fused
    assert all(count >= 1 for count, _ in fused)
    members = """
        SELECT e.name, list(DISTINCT f.framework_name), list(DISTINCT f.source_line), list(DISTINCT f.layer)
        FROM FrameworkInstruction f JOIN Executable e USING (process_idx, executable_idx)
        WHERE e.kind = 'fused' AND NOT f.is_backward GROUP BY e.name ORDER BY e.name
    """
    text = (folder.path / "program.py").read_text().splitlines()
    line = 1 + next(number for number, source in enumerate(text) if "return y * 0.5" in source)
    found = rows(on, members)
    forward = next(row for row in found if "aten::tanh" in row[1])
    assert {"aten::tanh", "aten::mul", "aten::sub"} <= set(forward[1])
    assert {line, line - 1} <= set(forward[2])
    assert "/Body" in forward[3]
    shares = "SELECT raw_hlo_id, sum(share) FROM FrameworkShare GROUP BY raw_hlo_id"
    assert all(abs(share - 1) < 1e-6 for _, share in rows(on, shares))
    assert rows(on, shares)


def test_two_captures_are_the_same(captured: tuple[Folder, dict[str, str]]) -> None:
    folder, _ = captured
    folder.capture(PROGRAM, "--host-clock", "fixed", "--eager-fusion", "auto", output="again.nprof")
    tables = list((folder.path / "auto.nprof").rglob("*.parquet"))
    assert tables
    for table in tables:
        other = folder.path / "again.nprof" / table.relative_to(folder.path / "auto.nprof")
        assert filecmp.cmp(table, other, shallow=False), table.name


def test_the_environment_chooses_where_the_command_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path)
    monkeypatch.setenv("NEURON_TOOLS_EAGER_FUSION", "sometimes")
    answer = folder.capture("print(1)", check=False)
    assert answer.returncode == 2
    assert "NEURON_TOOLS_EAGER_FUSION is 'sometimes': choose auto, on or off." in answer.stderr
