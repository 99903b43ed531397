"""What the sampler writes of a process's threads and of its garbage collector."""

import gc
import json
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch  # noqa: F401  (the device belongs to it)

from neuron_tools.capture.host_samples.sampler import HostSampler
from neuron_tools.records.host_samples import SAMPLE_DTYPE, SampleKind

ENOUGH = 3
PATIENCE_S = 60


class Samples:
    """What has been written into a folder so far."""

    def __init__(self, folder):
        self.folder = folder

    def records(self):
        (file,) = self.folder.glob("samples*.bin")
        text = file.read_bytes()
        return np.frombuffer(text[: len(text) // SAMPLE_DTYPE.itemsize * SAMPLE_DTYPE.itemsize], SAMPLE_DTYPE)

    def stacks(self):
        (file,) = self.folder.glob("samples*.jsonl")
        return {stack["id"]: stack for stack in map(json.loads, file.read_text().splitlines())}

    def of(self, kind, function):
        """The records of a kind whose innermost frame is in a function."""
        records = self.records()
        stacks = self.stacks()  # written before the records that name them
        chosen = records[records["kind"] == kind]
        return [record for record in chosen if stacks[record["stack"]]["frames"][0][2].endswith(function)]


@pytest.fixture
def samples(tmp_path):
    sampler = HostSampler(tmp_path, child=1)  # looks outside virtual time, too
    sampler.start()
    yield Samples(tmp_path)
    sampler.stop()


def spin_until(done):
    end = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < end:
        for _ in range(100_000):
            pass


def test_a_busy_line_of_the_main_thread_is_met(samples):
    spin_until(lambda: len(samples.of(SampleKind.THREAD, "spin_until")) >= ENOUGH)
    record = samples.of(SampleKind.THREAD, "spin_until")[-1]
    assert record["main"] == 1
    assert record["thread"] == 0
    assert record["wall_start_ns"] < record["wall_end_ns"]
    stack = samples.stacks()[record["stack"]]
    innermost, caller = stack["frames"][:2]
    first = spin_until.__code__.co_firstlineno
    assert innermost[0] == __file__
    assert first + 2 <= innermost[1] <= first + 4
    assert caller[2] == "test_a_busy_line_of_the_main_thread_is_met"
    assert stack["span"][0] in (0, innermost[1])


def test_other_threads_are_numbered(samples):
    def threads():
        return {int(record["thread"]) for record in samples.of(SampleKind.THREAD, "spin_until")}

    thread = threading.Thread(target=spin_until, args=[lambda: len(threads()) > 1])
    thread.start()
    spin_until(lambda: not thread.is_alive())
    assert len(threads()) > 1
    assert 0 in threads()  # which number the other has depends on threads of other tests


def collect_something():
    garbage = [[] for _ in range(300_000)]
    for item in garbage:
        item.append(item)
    del garbage, item
    gc.collect()


def test_a_collection_stands_where_it_happened(samples):
    collect_something()
    (record, *_) = samples.of(SampleKind.COLLECTION, "collect_something")
    assert record["start_ns"] < record["end_ns"]
    assert record["thread"] == 0


def test_what_is_stopped_writes_no_more(tmp_path):
    sampler = HostSampler(tmp_path, child=1)
    sampler.start()
    spin_until(lambda: len(Samples(tmp_path).records()) >= ENOUGH)
    sampler.stop()
    before = len(Samples(tmp_path).records())
    collect_something()
    assert len(Samples(tmp_path).records()) == before


def test_a_main_thread_that_waits_is_met(samples):
    end = time.monotonic() + PATIENCE_S
    while len(samples.of(SampleKind.THREAD, "_that_waits_is_met")) < ENOUGH and time.monotonic() < end:
        time.sleep(0.2)
    waits = [record for record in samples.of(SampleKind.THREAD, "_that_waits_is_met") if record["blocked"]]
    assert waits


ENDED_AT_ONCE = """
import os, sys, time
from pathlib import Path
import torch
from neuron_tools.capture.host_samples.sampler import HostSampler

def deep(levels):
    return deep(levels - 1) if levels else sum(range(2000))

HostSampler(Path(sys.argv[1]), child=1).start()
end = time.monotonic() + 1
while time.monotonic() < end:
    deep(int(time.monotonic() * 1000) % 90)
os._exit(0)
"""


def test_whatever_ends_the_process_no_record_names_an_unknown_stack(tmp_path):
    subprocess.run([sys.executable, "-c", ENDED_AT_ONCE, str(tmp_path)], check=True)
    samples = Samples(tmp_path)
    assert len(samples.records()) > ENOUGH
    assert set(samples.records()["stack"].tolist()) <= set(samples.stacks())
