"""`neuron-profile capture` of PyTorch programs on the simulated device."""

import sys
from pathlib import Path

import pytest

from tests.integration.commands.capturing import Workplace

PYTHON = sys.executable

MODEL = """\
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 128)
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(x)))


model = Net().to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(32, 64).to("neuron")
y = torch.randint(0, 10, (32,)).to("neuron")


def step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()
"""
FORWARD_LINE = MODEL.splitlines().index("        return self.head(torch.relu(self.hidden(x)))") + 1
OPTIMIZER_LINE = MODEL.splitlines().index("    optimizer.step()") + 1


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workplace, str]:
    """A folder with the captured training, and what the capture said on standard error."""
    workplace = Workplace(tmp_path_factory.mktemp("trained"))
    workplace.script("train.py", MODEL + "print('losses', [step() for _ in range(3)])\n")
    answer = workplace.capture(PYTHON, "train.py")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("losses [")
    return workplace, answer.stderr


def test_the_summary_on_standard_error_names_lines_and_modules(trained: tuple[Workplace, str]) -> None:
    _, said = trained
    assert f"train.py:{FORWARD_LINE}" in said
    assert "return self.head(torch.relu(self.hidden(x)))" in said
    assert "hidden" in said
    assert said.splitlines()[-1].startswith("Profile: train.nprof")


def test_no_rule_is_broken(trained: tuple[Workplace, str]) -> None:
    answer = trained[0].run("verify", "train.nprof")
    assert answer.returncode == 0, answer.stdout


def test_the_profile_is_whole(trained: tuple[Workplace, str]) -> None:
    facts = trained[0].info("train.nprof")
    assert (facts["complete"], facts["interrupted"], facts["exit_status"], facts["missing"]) == (
        True,
        False,
        0,
        [],
    )
    assert len(facts["processes"]) == 1
    assert facts["tables"]["Instruction"] > 0


def test_device_time_has_lines_and_modules_and_backward_stands_at_the_forward_line(
    trained: tuple[Workplace, str],
) -> None:
    from neuron_profile.analysis.hotspots import find_hotspots
    from neuron_tools import open_profile

    with open_profile(trained[0].folder / "train.nprof") as profile:
        hotspots = find_hotspots(profile)
        (executed,) = profile.query(
            "SELECT sum(duration_ns) AS ns FROM SystemProfileEvents WHERE name = 'nc_exec_running'"
        ).to_pylist()
    assert hotspots.device_ns == pytest.approx(float(executed["ns"]))
    assert hotspots.without_line_ns <= 0.05 * hotspots.device_ns
    costs = {row.place.line: row.cost for row in hotspots.lines if row.place.file.endswith("train.py")}
    assert costs[FORWARD_LINE].forward_ns > 0
    assert costs[FORWARD_LINE].backward_ns > 0
    assert costs[OPTIMIZER_LINE].forward_ns > 0


@pytest.mark.slow
def test_two_captures_with_the_fixed_clock_are_identical(workplace: Workplace) -> None:
    workplace.script("train.py", MODEL + "print([step() for _ in range(2)])\n")
    for name in ("a", "b"):
        answer = workplace.capture(
            PYTHON, "train.py", options=("-o", f"{name}.nprof", "--host-clock", "fixed")
        )
        assert answer.returncode == 0, answer.stderr
    first, second = (parts(workplace.folder / f"{name}.nprof") for name in ("a", "b"))
    assert list(first) == list(second)
    assert [name for name in first if first[name] != second[name]] == []


def parts(profile: Path) -> dict[str, bytes]:
    """The bytes of every part of a profile's tables."""
    return {str(path.relative_to(profile)): path.read_bytes() for path in sorted(profile.rglob("*.parquet"))}


@pytest.mark.slow
def test_children_that_the_command_starts_are_recorded_too(workplace: Workplace) -> None:
    workplace.script("worker.py", MODEL + "print(step())\n")
    workplace.script(
        "launch.py",
        "import subprocess, sys\n"
        "for _ in range(2):\n    subprocess.run([sys.executable, 'worker.py'], check=True)\n",
    )
    answer = workplace.capture(PYTHON, "launch.py")
    assert answer.returncode == 0, answer.stderr
    facts = workplace.info("launch.nprof")
    assert len(facts["processes"]) == 2
    counts = workplace.query(
        "launch.nprof", "SELECT process_idx, count(*) AS n FROM Instruction GROUP BY ALL ORDER BY ALL"
    )
    assert [row["process_idx"] for row in counts] == [0, 1]
    assert counts[0]["n"] == counts[1]["n"]


def test_a_script_that_fails_leaves_its_profile(workplace: Workplace) -> None:
    workplace.script("fails.py", MODEL + "step()\nraise RuntimeError('broken model')\n")
    answer = workplace.capture(PYTHON, "fails.py")
    assert answer.returncode == 1
    assert "RuntimeError: broken model" in answer.stderr
    assert "The command failed with exit status 1." in answer.stderr
    assert workplace.info("fails.nprof")["tables"]["Instruction"] > 0


def test_ctrl_c_leaves_a_profile_marked_interrupted(workplace: Workplace) -> None:
    workplace.script("train.py", MODEL + "step()\nprint('ready', flush=True)\nwhile True:\n    step()\n")
    process = workplace.start("capture", "--", PYTHON, "train.py")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(2)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "Interrupted: the command was stopped" in said
    facts = workplace.info("train.nprof")
    assert (facts["interrupted"], facts["exit_status"]) == (True, 130)
    assert facts["tables"]["Instruction"] > 0


@pytest.mark.slow
def test_a_command_killed_while_it_trains_leaves_what_was_written(workplace: Workplace) -> None:
    wait_for_records = (
        "import glob, json, os\n"
        "log = json.loads(os.environ['NEURON_TOOLS_CAPTURE'])['directory'] + '/log/*/events.bin'\n"
        "while sum(map(os.path.getsize, glob.glob(log))) < 10_000:\n    step()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    workplace.script("train.py", MODEL + wait_for_records)
    answer = workplace.capture(PYTHON, "train.py")
    assert answer.returncode == 137
    assert "Incomplete: the recording did not reach its end" in answer.stderr
    facts = workplace.info("train.nprof")
    assert (facts["complete"], facts["exit_status"]) == (False, 137)
    assert facts["tables"]["Instruction"] > 0
