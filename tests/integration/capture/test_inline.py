"""`with neuron_tools.profile(path)` records the block of the running process."""

from __future__ import annotations

import pytest

from tests.integration.capture.programs import TRAIN, Folder, breaches, last_line, rows


def test_one_block_after_another_and_what_is_refused_between(folder: Folder) -> None:
    answer = folder.python(
        TRAIN
        + """
import os
import neuron_tools
from neuron_tools.errors import UsageError
before = torch.neuron.memory_allocated()
compiled = torch.compile(lambda x: (x * 2).relu().sum(), backend="neuron")
with neuron_tools.profile("first.nprof", host_clock="fixed", eager_fusion="off") as run:
    step(); compiled(inputs)
    try:
        with neuron_tools.profile("nested.nprof"):
            pass
    except UsageError as error:
        print("nested:", error)
    step()
print("first:", run.summary()["total_time"] > 0)
step()  # nobody records this
freed = torch.ones(1000).to("neuron")
with neuron_tools.profile("second.nprof", host_clock="fixed", eager_fusion="off"):
    step(); compiled(inputs)
    del freed
try:
    with neuron_tools.profile("first.nprof"):
        pass
except UsageError as error:
    print("existing:", error)
print("still works:", step() > 0, compiled(inputs).item() > 0)
print("nested made:", os.path.exists("nested.nprof"))
"""
    )
    said = answer.stdout.splitlines()
    assert said[0].startswith("nested: This process is being recorded into ")
    assert said[1] == "first: True"
    assert said[2] == "existing: first.nprof exists: choose another path, or remove it first."
    assert said[3:] == ["still works: True True", "nested made: False"]
    counts = "SELECT kind, sum(execution_count) FROM Executable GROUP BY kind ORDER BY kind"
    first, second = folder.profile("first.nprof"), folder.profile("second.nprof")
    for profile in (first, second):
        assert profile.complete
        assert breaches(profile) == []
        assert rows(profile, "SELECT message FROM Warning") == []
    (eager, twice), graph = rows(first, counts)
    (_, once), _ = rows(second, counts)
    assert (eager, twice, graph) == ("eager", 2 * once, ("graph", 1))
    least = "SELECT min(total_bytes) FROM SystemProfileHbmUsage"
    assert rows(second, least)[0][0] > 0


@pytest.mark.slow
def test_the_device_is_what_it_was_after_a_block(folder: Folder) -> None:
    answer = folder.python(
        TRAIN
        + """
import neuron_tools
from neuron_tools.device import native
print(torch.neuron.get_device_name())
with neuron_tools.profile("run.nprof", target="trn1"):
    step()
    print(torch.neuron.get_device_name())
print(torch.neuron.get_device_name())
native.set_memory_limit(1 << 31)
print(torch.neuron.mem_get_info()[1] == 1 << 31)
"""
    )
    before, inside, after, is_limited = answer.stdout.splitlines()
    assert before == after != inside
    assert is_limited == "True"


def test_an_exception_in_the_block_leaves_an_incomplete_profile(folder: Folder) -> None:
    answer = folder.python(
        TRAIN
        + """
import neuron_tools
try:
    with neuron_tools.profile("run.nprof", settings=["hbm_bandwidth=2x"]):
        step()
        raise RuntimeError("the user's own")
except RuntimeError as error:
    print(error)
print(step() > 0)
"""
    )
    assert answer.stdout.splitlines() == ["the user's own", "True"]
    profile = folder.profile()
    assert not profile.complete
    assert profile.metadata["interrupted"] is False
    assert profile.metadata["settings"] == ["hbm_bandwidth=2x"]
    assert profile.tables()["Instruction"] > 0
    assert breaches(profile) == []


@pytest.mark.slow
def test_a_process_killed_in_the_block_can_be_recovered(folder: Folder) -> None:
    answer = folder.python(
        TRAIN
        + """
import os, pathlib, neuron_tools
with neuron_tools.profile("run.nprof"):
    log = pathlib.Path("run.nprof/log/process-0000/events.bin")
    while not log.exists() or log.stat().st_size < 10_000:
        step()
    os.kill(os.getpid(), 9)
""",
        check=False,
    )
    assert answer.returncode == -9
    assert "neuron-profile recover" in folder.neuron_profile("info", "run.nprof").stdout
    folder.neuron_profile("recover", "run.nprof")
    profile = folder.profile()
    assert not profile.complete
    assert profile.tables()["Instruction"] > 0
    assert breaches(profile) == []


def test_a_captured_process_does_not_profile_itself(folder: Folder) -> None:
    answer = folder.capture(
        "import torch, neuron_tools\nwith neuron_tools.profile('inner.nprof'):\n    pass\n",
        check=False,
    )
    assert answer.returncode == 1
    assert "This process is being recorded into" in answer.stderr
    assert not (folder.path / "inner.nprof").exists()
    assert folder.profile().complete


def test_an_empty_block_is_an_empty_profile(folder: Folder) -> None:
    answer = folder.python(
        "import neuron_tools\n"
        "with neuron_tools.profile('run.nprof') as run:\n"
        "    pass\n"
        "print(run.open().complete)\n"
    )
    assert last_line(answer.stdout) == "True"
