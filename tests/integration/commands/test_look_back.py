"""Look-back capture of a running program: rules, snapshots and crashes."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

import pytest

from tests.integration.commands.capturing import Workplace

SERVER = """
import sys, torch
model = torch.nn.Linear(8, 8).to("neuron")
x = torch.ones(4, 8, device="neuron")
def serve(count):
    for _ in range(count):
        with torch.profiler.record_function("request"):
            model(x).sum().item()
"""


def server(workplace: Workplace, end: str) -> Path:
    return workplace.script("serve.py", SERVER + end)


def test_a_crash_leaves_its_last_seconds(workplace: Workplace) -> None:
    script = server(workplace, 'serve(50)\nraise RuntimeError("boom")')
    run = workplace.run("capture", "--last", "30s", "--", sys.executable, script)
    assert run.returncode == 1
    assert "RuntimeError: boom" in run.stderr
    assert "alert: error: the command ended with exit status 1" in run.stderr
    spans = workplace.query("serve-alert.nprof", "SELECT count(*) AS n FROM HostSpan WHERE name = 'request'")
    assert spans == [{"n": 50}]
    assert workplace.run("verify", "serve-alert.nprof").returncode == 0


@pytest.mark.slow
def test_a_program_that_ends_well_leaves_nothing(workplace: Workplace) -> None:
    run = workplace.run("capture", "--last", "5s", "--", sys.executable, server(workplace, "serve(3)"))
    assert run.returncode == 0
    assert "no rule was met, so no profile was written" in run.stderr
    assert [path.name for path in workplace.folder.iterdir()] == ["serve.py"]


def test_a_rule_that_is_met_names_the_profile(workplace: Workplace) -> None:
    options = ("--last", "30s", "--when", "range:request > 1ns")
    script = server(workplace, "serve(20)")
    run = workplace.run("capture", *options, "--", sys.executable, script)
    assert run.returncode == 0
    assert "alert: range:request > 1ns: request:" in run.stderr
    named = re.search(r"Profile: (\S+)", run.stderr)
    assert named is not None
    manifest = json.loads((workplace.folder / named[1] / "profile.json").read_text())
    assert manifest["snapshot"]["reason"].startswith("range:request > 1ns: request:")


def test_a_snapshot_of_a_running_program(workplace: Workplace) -> None:
    waiting = 'serve(5)\nprint("ready", flush=True)\nsys.stdin.readline()\nserve(5)'
    script = server(workplace, f"import os\n{waiting}".replace('"ready"', "os.getpid()"))
    with workplace.start("capture", "--last", "60s", "--", sys.executable, script) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        reader = threading.Thread(target=lambda: run.stderr and run.stderr.read())
        reader.start()
        pid = int(run.stdout.readline())
        taken = workplace.run("snapshot", pid, "-o", "now.nprof")
        run.stdin.write("\n")
        run.stdin.flush()
        reader.join()
        assert run.wait() == 0
    assert taken.returncode == 0, taken.stderr
    spans = workplace.query("now.nprof", "SELECT count(*) AS n FROM HostSpan WHERE name = 'request'")
    assert spans[0]["n"] <= 5
    assert workplace.run("verify", "now.nprof").returncode == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--last", "soon"), "'soon' is no time to keep: write e.g. 30s"),
        (("--last", "0s"), "'0s' is no time to keep"),
        (("--last", "5s", "--when", "slow"), "The rule 'slow' is not understood"),
        (("--when", "step > 5ms"), "--when needs --last"),
    ],
)
def test_wrong_use_is_told_in_one_line(workplace: Workplace, options: tuple[str, ...], sentence: str) -> None:
    run = workplace.run("capture", *options, "--", sys.executable, server(workplace, ""))
    assert run.returncode == 2
    assert sentence in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("pid", ["0", "abc"])
def test_a_process_number_must_be_one(workplace: Workplace, pid: str) -> None:
    assert workplace.run("snapshot", pid).returncode == 2
