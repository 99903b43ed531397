"""Foreign SQL runs in a process that reads one profile, and keeps to its time and memory."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuron_tools.profile.lockdown import kernel, query_worker
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.store.sandbox import QueryError
from tests.fixtures.foreign_traces import all_traces
from tests.unit.profile.builders import instruction, write_profile

ROOT = str(Path(__file__).parents[3])


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    tables = {"Instruction": [instruction("Tensor", 0, 7), instruction("Vector", 3, 9)]}
    directory = write_profile(tmp_path_factory.mktemp("lockdown") / "p.nprof", tables, derive=False)
    with open_profile(directory, memory_limit="256MiB") as opened:
        yield opened


def test_the_process_answers_as_the_profile_itself_does(profile):
    query = "SELECT engine, duration_ns FROM Instruction ORDER BY start_ts"
    assert profile.query(query, timeout_s=60).equals(profile.query(query))


def test_a_misspelt_table_is_told_there_too(profile):
    with pytest.raises(QueryError, match=r"no table 'Instructions'\. Did you mean 'Instruction'"):
        profile.query("FROM Instructions", timeout_s=60)


def test_parameters_and_a_slice_reach_the_process(profile):
    query = "SELECT engine FROM Instruction WHERE engine = ?"
    assert profile.query(query, ["Vector"], timeout_s=60).num_rows == 1
    with profile.slice(0, 2) as part:
        assert part.query("FROM Instruction", timeout_s=60).num_rows == 1


def test_the_first_rows_are_cut_in_the_process(profile):
    assert profile.first_rows("SELECT * FROM range(1000000000)", 5, 60).num_rows == 5


def test_one_call_of_a_function_is_stopped_at_the_deadline_and_the_next_query_runs(profile):
    endless = "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))"
    with pytest.raises(QueryError, match=r"longer than 0\.01 s and was stopped"):
        profile.query(endless, timeout_s=0.01)
    assert profile.query("SELECT 1 AS one", timeout_s=60).to_pylist() == [{"one": 1}]


@pytest.mark.parametrize(
    "query",
    ["SELECT length(printf('%2000000000d', 1))", "SELECT length(repeat(repeat('x', 100000000), 30))"],
)
def test_memory_that_the_database_does_not_count_is_refused_alike(profile, query):
    with pytest.raises(QueryError, match="more memory than its limit"):
        profile.query(query, timeout_s=60)


@pytest.mark.parametrize(
    "value", ["TIMESTAMP '290000-01-01'", "[DATE '5877642-06-25']", "{'a': '-infinity'::DATE}"]
)
def test_times_that_python_has_not_are_refused_in_a_sentence(profile, value):
    with pytest.raises(QueryError, match="Column 't' holds times before the year 1 or after 9999"):
        profile.query(f"SELECT {value} AS t", timeout_s=60)


def test_a_cancelled_query_ends(profile):
    @contextmanager
    def cancelled_at_once(stop):
        stop()
        yield

    with pytest.raises(QueryError):
        profile.first_rows("SELECT 1", 1, 60, interrupting=cancelled_at_once)


def test_few_processes_wait_for_queries(profile):
    for end in range(3, 3 + query_worker.MOST_IDLE + 1):
        with profile.slice(0, end) as part:
            part.query("SELECT 1", timeout_s=60)
    assert len(query_worker._idle) <= query_worker.MOST_IDLE
    query_worker.close_idle()
    assert query_worker._idle == []


def locked_down(code, folder):
    """What a process prints that runs `code` after it has given everything away but a folder."""
    program = (
        "import os, socket, sys\n"
        "from pathlib import Path\n"
        "from neuron_tools.profile.lockdown import kernel\n"
        f"files = kernel.read_only_below([Path({str(folder)!r})])\n"
        "calls = kernel.refuse_system_calls()\n"
        "def attempt(function):\n"
        "    try:\n        function()\n    except OSError as error:\n        print(type(error).__name__)\n"
        "    else:\n        print('done')\n"
        "print(files, calls)\n" + code
    )
    environment = {"PYTHONPATH": ROOT}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    (files, calls), *rest = (line.split() for line in ran.stdout.splitlines())
    return files == "True", calls == "True", [line[0] for line in rest]


def test_the_kernel_keeps_files_and_the_network_from_the_process(tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "file").write_text("x")
    (tmp_path / "secret").write_text("x")
    given, secret = tmp_path / "given", tmp_path / "secret"
    files, calls, (read, other, write, network, program) = locked_down(
        f"attempt(lambda: open({str(given / 'file')!r}).read())\n"
        f"attempt(lambda: open({str(secret)!r}).read())\n"
        f"attempt(lambda: open({str(given / 'new')!r}, 'w'))\n"
        "attempt(lambda: socket.socket())\n"
        "attempt(lambda: os.execv('/bin/true', ['true']))\n",
        given,
    )
    assert read == "done"
    if files:
        assert (other, write) == ("PermissionError", "PermissionError")
    if calls:
        assert (network, program) == ("PermissionError", "PermissionError")


def test_a_machine_without_a_table_of_calls_is_told(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "pdp11")
    assert not kernel.refuse_system_calls()


def test_a_command_keeps_to_its_folder_once_it_has_the_process_for_itself(tmp_path):
    given, temporary = tmp_path / "given", tmp_path / "temporary"
    for folder in (given / "a", given / "b", temporary):
        folder.mkdir(parents=True)
    (tmp_path / "other").write_text("x")
    program = f"""
import os, socket, sys
from pathlib import Path
from neuron_tools.profile.lockdown.own_process import give_away_all_but
print(give_away_all_but([Path({str(given)!r})]))
def attempt(function):
    try:
        function()
    except OSError as error:
        print(type(error).__name__)
    else:
        print("done")
attempt(lambda: open({str(tmp_path / "other")!r}).read())
attempt(lambda: open({str(given / "a/new")!r}, "w"))
attempt(lambda: os.rename({str(given / "a/new")!r}, {str(given / "b/new")!r}))
attempt(lambda: open({str(temporary / "new")!r}, "w"))
attempt(lambda: open({str(tmp_path / "other")!r}, "w"))
attempt(lambda: os.unlink({str(tmp_path / "other")!r}))
attempt(lambda: socket.socket())
attempt(lambda: os.execv("/bin/true", ["true"]))
"""
    environment = {"PYTHONPATH": ROOT, "TMPDIR": str(temporary)}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    took, *rest = ran.stdout.split()
    assert rest[:4] == ["done"] * 4
    if took == "True":
        assert rest[4:] == ["PermissionError"] * 4


def test_an_old_kernel_leaves_writing_as_it_is(monkeypatch):
    monkeypatch.setattr(kernel, "_landlock_version", lambda: 1)
    assert not kernel.write_only_below([])


def test_every_format_is_imported_by_a_process_that_gave_all_else_away(tmp_path):
    """As `neuron-profile import` does; one process each, forked where nothing but code is loaded."""
    for folder in ("traces", "made", "temporary"):
        (tmp_path / folder).mkdir()
    for number, content in enumerate(all_traces().values()):
        (tmp_path / "traces" / str(number)).write_bytes(content)
    program = f"""
import os
from pathlib import Path
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.lockdown.own_process import give_away_all_but
folder = Path({str(tmp_path)!r})
for trace in sorted((folder / "traces").iterdir()):
    if not os.fork():
        give_away_all_but([folder / "made"])
        import_traces([trace], folder / "made" / f"{{trace.name}}.nprof")
        os._exit(0)
    print(os.wait()[1])
"""
    environment = {"PYTHONPATH": ROOT, "TMPDIR": str(tmp_path / "temporary")}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert ran.stdout.split() == ["0"] * len(all_traces()), ran.stderr[-2000:]
