"""A command is run once for each rank of a job that runs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from neuron_profile.launch.job import rank_command
from neuron_profile.launch.rank_processes import RankPlan, differing_ranks, run_ranks
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import UsageError

TELL = """
import json, os, pathlib, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")
told = json.dumps([int(os.environ[name]) for name in names])
pathlib.Path(sys.argv[1], os.environ["RANK"]).write_text(told)
"""
ANSWER = """
import json, os, pathlib
job = json.loads(os.environ["NEURON_TOOLS_JOB"])
pathlib.Path(job["asks"]).write_text(json.dumps([0, 4]))
"""


def test_each_rank_is_told_its_place_on_the_instances(tmp_path):
    plan = RankPlan(1024, (0, 130), 128)
    assert run_ranks(plan, [sys.executable, "-c", TELL, str(tmp_path)], os.environ) == 0
    told = {path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    assert told == {"0": [0, 1024, 0, 128, 0], "130": [130, 1024, 2, 128, 1]}


def test_the_status_is_that_of_the_rank_that_failed():
    script = "import os, sys, time; sys.exit(3) if os.environ['RANK'] == '1' else time.sleep(60)"
    assert run_ranks(RankPlan(4, (0, 1), 4), [sys.executable, "-c", script], os.environ) == 3


RUN = """
import os, sys
from neuron_profile.launch.rank_processes import RankPlan, run_ranks
rank = sys.argv[1]
sys.exit(run_ranks(RankPlan(8, (0, 1), 8), [sys.executable, "-c", rank], os.environ))
"""
RANK = """
import os, signal, time
{before}
os.write(1, f"{{os.getpid()}}\\n".encode())
while True:
    time.sleep(60)
"""
IGNORES = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_group_ends_all_ranks_before_it(number):
    status, ranks = stopped(number, RANK.format(before=""))
    assert status == 128 + number
    assert not any(runs(int(rank)) for rank in ranks)


def test_ranks_that_ignore_the_signal_are_killed():
    status, ranks = stopped(signal.SIGTERM, RANK.format(before=IGNORES), grace="0.2")
    assert status == 128 + signal.SIGTERM
    assert not any(runs(int(rank)) for rank in ranks)


def stopped(number, rank, *, grace="10"):
    """Start two ranks, send them and their launcher a signal when they run, and wait for the launcher."""
    run = f"import neuron_profile.launch.rank_processes as all_; all_._GRACE_S = {grace}\n{RUN}"
    command = [sys.executable, "-c", run, rank]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as launcher:
        ranks = [launcher.stdout.readline().strip() for _ in range(2)]
        os.killpg(launcher.pid, number)
        return launcher.wait(), ranks


LEFT = """
import os, time
os.write(1, b"runs\\n")
time.sleep(60)
os.write(1, b"left\\n")
"""
START = "import subprocess, sys; subprocess.run(sys.argv[1:])"
RANKS = RankPlan(8, (0, 1), 8).command([sys.executable, "-c", LEFT])


@pytest.mark.parametrize("command", [RANKS, (sys.executable, "-c", START, *RANKS)])
def test_no_rank_outlives_a_killed_launcher_or_capture(command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
        assert [killed.stdout.readline() for _ in range(2)] == ["runs\n"] * 2
        killed.kill()
        assert killed.stdout.read() == ""


def runs(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_first_rank_names_those_that_differ():
    plan = RankPlan(8, None, 8)
    assert differing_ranks(plan, [sys.executable, "-c", ANSWER], os.environ) == (0, 4)
    assert differing_ranks(plan, [sys.executable, "-c", ""], os.environ) == (0,)


@pytest.mark.parametrize("ranks", ["0,8", "-1", "one"])
def test_ranks_that_the_job_lacks_are_refused(ranks):
    with pytest.raises(UsageError, match="--run-ranks"):
        rank_command(("python", "x.py"), CaptureOptions(Path(), world_size=8), ranks)


def test_a_launcher_of_ranks_is_refused():
    with pytest.raises(UsageError, match="starts the ranks"):
        rank_command(("/usr/bin/torchrun", "x.py"), CaptureOptions(Path(), world_size=8), "auto")


def test_a_command_of_one_rank_is_left_alone():
    assert rank_command(("python", "x.py"), CaptureOptions(Path()), "auto") == ("python", "x.py")
