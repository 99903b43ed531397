"""What becomes of the processes that a captured command starts, and of those that end badly."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.integration.capture.programs import PYTHON, TRAIN, Folder, breaches, environment, rows

CHILDREN = """
import subprocess, sys
children = [subprocess.Popen([sys.executable, "child.py", str(n)]) for n in range(2)]
sys.exit(sum(child.wait() for child in children))
"""


def test_each_process_has_its_part_on_one_clock(folder: Folder) -> None:
    folder.write("child.py", TRAIN + "step()\n")
    folder.capture(CHILDREN)
    profile = folder.profile()
    assert profile.complete
    assert breaches(profile) == []
    processes = rows(profile, "SELECT process_idx, process_id, command FROM ProcessInfo ORDER BY process_idx")
    assert [number for number, _, _ in processes] == [0, 1]
    assert len({process_id for _, process_id, _ in processes}) == 2
    assert all("child.py" in command for _, _, command in processes)
    assert rows(profile, "SELECT count(*) - count(DISTINCT id) FROM Instruction") == [(0,)]
    starts = rows(profile, "SELECT process_idx, min(start_ts) FROM HostSpan GROUP BY 1 ORDER BY 2")
    began = dict(rows(profile, "SELECT process_idx, start_unix_ns FROM ProcessInfo"))
    assert starts[0][1] >= 0
    later = began[starts[1][0]] - began[starts[0][0]]
    assert starts[1][1] - starts[0][1] < abs(later) + 60 * 10**9


def test_forked_workers_leave_the_log_alone(folder: Folder) -> None:
    folder.capture(
        TRAIN
        + """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return torch.full((16,), float(index)) * 2
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    step()
    for batch in loader:
        model(batch.to("neuron")).sum().item()
    step()
"""
    )
    profile = folder.profile()
    assert profile.complete
    assert breaches(profile) == []
    assert rows(profile, "SELECT message FROM Warning") == []
    assert rows(profile, "SELECT count(*) FROM ProcessInfo") == [(1,)]
    copies = "SELECT count(*) FROM SystemProfileEvents WHERE name = 'nrt_tensor_write'"
    assert rows(profile, copies)[0][0] >= 2


@pytest.mark.slow
def test_what_a_killed_process_had_written_opens(folder: Folder) -> None:
    answer = folder.capture(
        TRAIN
        + """
import glob, json, os
log = json.loads(os.environ["NEURON_TOOLS_CAPTURE"])["directory"] + "/log/*/events.bin"
while sum(map(os.path.getsize, glob.glob(log))) < 20_000:
    step()
os.kill(os.getpid(), 9)
""",
        check=False,
    )
    assert answer.returncode == 137
    profile = folder.profile()
    assert not profile.complete
    assert profile.tables()["Instruction"] > 0
    assert breaches(profile) == []


def test_a_killed_capture_is_recovered_with_all_that_was_recorded(folder: Folder) -> None:
    folder.write(
        "program.py", TRAIN + "for _ in range(5):\n    step()\nprint('trained', flush=True)\ninput()\n"
    )
    command = [*folder.capture_command("run.nprof"), "--", PYTHON, "program.py"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=folder.path, text=True, env=environment(), **pipes) as capture:
        assert capture.stdout is not None
        assert capture.stdin is not None
        assert capture.stdout.readline() == "trained\n"
        capture.send_signal(signal.SIGKILL)
        capture.wait()
        refused = folder.neuron_profile("recover", "run.nprof", check=False)
        assert refused.returncode == 1
        assert "recover it when the captured command has ended" in refused.stderr
        capture.stdin.write("\n")
        capture.stdin.close()
        capture.stdout.read()
    said = folder.neuron_profile("view", "run.nprof", "--output-format", "summary-text", check=False)
    assert "neuron-profile recover" in " ".join((said.stdout + said.stderr).split())
    folder.neuron_profile("recover", "run.nprof")
    profile = folder.profile()
    assert profile.complete
    assert breaches(profile) == []
    assert rows(profile, "SELECT count(*) FROM HostSpan WHERE name = 'SGD.step'") == [(5,)]


def test_a_script_that_only_imports_torch(folder: Folder) -> None:
    folder.capture("import torch\n")
    profile = folder.profile()
    assert profile.complete
    assert breaches(profile) == []
    assert rows(profile, "SELECT process_idx, exit_status FROM ProcessInfo") == [(0, 0)]
    assert "Instruction" not in profile.tables()


def test_a_script_that_never_imports_torch(folder: Folder) -> None:
    answer = folder.capture("print('hello')\n")
    assert answer.stdout == "hello\n"
    profile = folder.profile()
    assert profile.complete
    assert breaches(profile) == []
    assert "ProcessInfo" not in profile.tables()


def test_a_forked_child_that_uses_the_device_is_not_recorded(folder: Folder) -> None:
    folder.capture(
        TRAIN
        + """
import os, pathlib, json, neuron_tools
graph = torch.compile(lambda x: (x * 2).sum(), backend="neuron")
graph(inputs)
log = pathlib.Path(json.loads(os.environ["NEURON_TOOLS_CAPTURE"])["directory"], "log/process-0000")
def content():
    files = [path for path in log.rglob("*") if path.is_file() and path.suffix != ".bin"]
    return {path: path.read_bytes() for path in files if not path.name.startswith("samples")}
before = content()
child = os.fork()
if not child:
    graph(inputs[:3])
    (inputs + 5).tanh()
    model(inputs)
    with neuron_tools.profile("child.nprof"):
        inputs * 3
    os._exit(content() != before)
assert os.waitpid(child, 0)[1] == 0
step()
"""
    )
    profile = folder.profile()
    assert profile.complete
    assert breaches(profile) == []
    assert rows(profile, "SELECT message FROM Warning") == []
    assert rows(profile, "SELECT count(*) FROM Executable WHERE name LIKE '%tanh%'") == [(0,)]
    assert rows(folder.profile("child.nprof"), "SELECT name FROM Executable") == [("aten::mul.Tensor",)]


def test_ranks_of_a_distributed_job_are_told(folder: Folder) -> None:
    folder.write("child.py", "import torch\n")
    folder.capture(
        "import os, subprocess, sys\n"
        "for rank in '01':\n"
        "    subprocess.run([sys.executable, 'child.py'], env={**os.environ, 'RANK': rank}, check=True)\n"
    )
    # The folder before the first rank's is its launcher's, which may record itself too.
    assert rows(folder.profile(), "SELECT process_idx, rank FROM ProcessInfo ORDER BY ALL") == [
        (1, 0),
        (2, 1),
    ]


def test_odd_names_of_folder_script_and_arguments(folder: Folder) -> None:
    script = folder.write("odd\nnäme.py", TRAIN + "step()\n")
    command = [*folder.capture_command("odd\nplace.nprof"), "--", PYTHON, script.name, "argument \udce9\n"]
    folder.run(*command)
    profile = folder.profile("odd\nplace.nprof")
    assert profile.complete
    assert breaches(profile) == []
    assert profile.metadata["command"][1:] == [script.name, "argument \\udce9\n"]
    files = rows(profile, "SELECT DISTINCT source_file FROM Instruction WHERE source_file IS NOT NULL")
    assert files == [(str(script),)]
    assert rows(profile, "SELECT path FROM SourceFile") == [(str(script),)]
