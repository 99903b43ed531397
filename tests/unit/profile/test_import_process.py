"""Traces that a process of its own imports, which may write into one folder and do nothing else."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from neuron_tools.profile.importers import TraceError
from neuron_tools.profile.lockdown import import_process, kernel
from neuron_tools.profile.lockdown.import_process import import_apart
from neuron_tools.profile.reader import open_profile
from tests.fixtures.foreign_traces import all_traces

ROOT = str(Path(__file__).parents[3])
TRACES = all_traces()
LOCKS = sys.platform == "linux" and os.uname().machine in kernel.REFUSED_CALLS


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    files = [folder / "chrome", folder / "torch"]
    for file, kind in zip(files, ("Chrome trace", "torch.profiler")):
        file.write_bytes(TRACES[kind])
    return files


@pytest.fixture
def made(tmp_path):
    (tmp_path / "made").mkdir()
    return tmp_path / "made"


def rights_given_away():
    """The kernel's `Seccomp` mode of the process that imports; other tests may have left children too."""
    child = next(each for each in psutil.Process().children() if "import_child" in " ".join(each.cmdline()))
    status = Path(f"/proc/{child.pid}/status").read_text()
    return next(line.split()[1] for line in status.splitlines() if line.startswith("Seccomp:"))


def test_the_process_imports_with_what_it_kept_and_tells_how_far_it_is(traces, made):
    told = []

    def progress(done, total):
        told.append((done, total, rights_given_away() if LOCKS and done < total else None))

    report = import_apart(traces, made / "job.nprof", progress=progress)
    assert list(report.formats.values()) == ["Chrome trace", "torch.profiler"]
    with open_profile(report.path) as profile:
        assert profile.tables()["TraceSpan"] == report.rows["TraceSpan"]
    assert [each[:2] for each in told] == [(1, 2), (2, 2)]
    assert told[0][2] == ("2" if LOCKS else None)


def test_what_is_no_trace_is_refused_in_a_sentence(tmp_path, made):
    (tmp_path / "text").write_text("hello")
    with pytest.raises(TraceError, match="in no known format"):
        import_apart([tmp_path / "text"], made / "job.nprof")
    assert list(made.iterdir()) == []


def test_an_import_that_is_stopped_leaves_nothing(traces, made):
    @contextmanager
    def at_once(stop):
        stop()
        yield

    with pytest.raises(TraceError, match="process that reads the trace ended"):
        import_apart(traces, made / "job.nprof", interrupting=at_once)
    assert list(made.iterdir()) == []


def test_the_process_ends_with_the_one_that_started_it(traces, tmp_path, made):
    long = tmp_path / "long.json"
    event = '{"ph": "X", "name": "step", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"step": 1}}'
    long.write_text(f"[{', '.join([event] * 300_000)}]")  # not read within an instant
    program = (
        "import sys; from neuron_tools.profile.lockdown.import_process import import_apart;"
        "import_apart(sys.argv[2:], sys.argv[1], progress=lambda *count: print(count, flush=True))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, made / "job.nprof", traces[0], long],
        env={"PYTHONPATH": ROOT, "PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, text=True,
    ) as starter:  # fmt: skip
        assert starter.stdout.readline() == "(1, 2)\n"
        children = psutil.Process(starter.pid).children()
        assert [each.suffix for each in made.iterdir()] == [".importing"]
        starter.send_signal(signal.SIGKILL)
    assert psutil.wait_procs(children, 60)[1] == []
    assert list(made.iterdir()) == []


def test_merge_gives_away_all_but_its_folder_where_it_has_the_process_for_itself(traces, made, tmp_path):
    for file in traces:
        import_apart([file], tmp_path / f"{file.name}.nprof")
    program = f"""
import socket, sys
from neuron_profile.cli import neuron_profile
from neuron_tools.command_line import run
print(run(neuron_profile, "neuron-profile", sys.argv[1:], is_whole_process=True))
for attempt in (lambda: open({str(tmp_path / "elsewhere")!r}, "w"), socket.socket):
    try:
        attempt()
    except OSError as error:
        print(type(error).__name__)
"""
    profiles = [str(tmp_path / f"{file.name}.nprof") for file in traces]
    (tmp_path / "temporary").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", program, "merge", *profiles, "-o", str(made / "job.nprof")],
        capture_output=True, text=True, check=True, env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    status, *refused = ran.stdout.split()
    assert status == "0", ran.stderr
    if kernel._landlock_version() >= kernel.MOVE_VERSION:
        assert refused == ["PermissionError", "PermissionError"]


def test_a_process_that_answers_nonsense_is_one_sentence(traces, made, monkeypatch):
    monkeypatch.setattr(import_process, "MODULE", "this")  # it prints a poem
    with pytest.raises(TraceError, match="gave no answer"):
        import_apart(traces, made / "job.nprof")
