"""The runner of public suites. It changes NumPy's random numbers, so it runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import argparse, json, sys
from pathlib import Path
import public_kernels

ended, results = int(sys.argv[1]), Path(sys.argv[2])

def stop(*arguments):
    with (results / "results.trn2.0.jsonl").open("a") as file:
        file.write(json.dumps({"case": "a.py::test", "outcome": "started"}) + "\\n")
    return ended

public_kernels._pytest = stop
options = argparse.Namespace(
    results=results, again=False, suite="nki-samples", memory=1, timeout=1, generated=False
)
public_kernels._run_share(results, "trn2", ["a.py::test"], 0, options)
print(public_kernels._results(results, "trn2"))
"""


def ended_with(status: int, folder: Path) -> str:
    """How a case ended that was running when pytest ended."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "scripts"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(status), str(folder)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_the_case_that_the_user_stops_is_run_again(tmp_path: Path) -> None:
    assert ended_with(2, tmp_path) == "{}"


def test_the_case_that_kills_its_process_has_failed(tmp_path: Path) -> None:
    assert "the process was killed" in ended_with(-9, tmp_path)


def test_the_garbage_collector_leaves_out_what_stays_until_the_end(tmp_path: Path) -> None:
    case = tmp_path / "test_case.py"
    case.write_text("import gc\n\ndef test():\n    assert gc.isenabled() and gc.get_freeze_count() > 0\n")
    path = os.pathsep.join([str(ROOT), str(ROOT / "scripts"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "public_kernels_plugin", "-p", "no:cacheprovider", case.name],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
