"""Large allocations of a program lie in a file, small ones in memory, and both are given back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import file_memory

BYTES = """
import os

def bytes_of_the_file():
    links = ((fd, os.readlink(f"/proc/self/fd/{fd}")) for fd in os.listdir("/proc/self/fd") if fd.isdigit()
             and os.path.islink(f"/proc/self/fd/{fd}"))
    return sum(os.fstat(int(fd)).st_blocks * 512 for fd, target in links if target.endswith("(deleted)"))
"""

PROGRAM = (
    BYTES
    + """
import json, resource
import numpy as np

def parts_of_the_file():
    lines = [line.split()[0] for line in open("/proc/self/maps") if "(deleted)" in line]
    return [tuple(int(end, 16) for end in line.split("-")) for line in lines]

def in_file(array):
    return any(first <= array.ctypes.data < end for first, end in parts_of_the_file())

resource.setrlimit(resource.RLIMIT_DATA, (1 << 28, 1 << 28))
large = [np.zeros(1 << 26), np.random.default_rng(0).random(1 << 21)]
held = [in_file(array) for array in [np.ones(1 << 10), *large]]
total = large[0].sum() + (np.sort(large[1]) >= 0).sum()
grown = np.arange(1 << 20)
grown.resize(1 << 21, refcheck=False)
kept = int(grown[: 1 << 20].sum()), int(grown[1 << 20 :].sum())
del large, grown
print(json.dumps({"held": held, "total": float(total), "kept": kept, "left": bytes_of_the_file()}))
"""
)


FORKS = """
import ctypes, json, os, resource, threading
library = ctypes.CDLL(None)
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
ended = threading.Event()

def take():
    library.free(library.malloc(1 << 21))

def take_again():
    while not ended.is_set():
        take()

def ends_in_a_child():
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (2, 2))  # not to wait for ever
        take()
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0

for _ in range(2):
    threading.Thread(target=take_again).start()
all_end = all(ends_in_a_child() for _ in range(200))
ended.set()
print(json.dumps({"all_end": all_end}))
"""


AGAIN = """
import json, resource
import numpy as np

def faults_of(step):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def fill():
    np.full(1 << 21, 7.0)

first, again = faults_of(fill), faults_of(fill)
zeros = float(np.zeros(1 << 21).sum())
print(json.dumps({"first": first, "again": again, "zeros": zeros}))
"""


FILES_AGAIN = (
    BYTES
    + """
import json
import numpy as np

def place():
    array = np.zeros(1 << 21)
    zeros = float(array.sum())
    array[:] = 7
    return array.ctypes.data, zeros

places, sums = zip(*(place() for _ in range(3)))
both = [np.ones(1 << 21), np.ones(1 << 21)]
taken = bytes_of_the_file()
del both
kept = bytes_of_the_file()
print(json.dumps({"places": len(set(places)), "sums": sums, "kept": kept, "freed": taken - kept}))
"""
)


def _run(program: str, variables: dict[str, str]) -> dict[str, object]:
    if not variables:
        pytest.skip("no C compiler")
    environment = {**os.environ, **variables, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a program saw whose arrays take twice the memory that it may have."""
    return _run(PROGRAM, file_memory.variables(tmp_path_factory.mktemp("library"), 1 << 23))


def test_arrays_beyond_the_memory_lie_in_the_file(ended: dict[str, object]) -> None:
    assert ended["held"] == [False, True, True]
    assert ended["total"] == 1 << 21


def test_an_array_that_grows_keeps_its_values(ended: dict[str, object]) -> None:
    count = 1 << 20
    assert ended["kept"] == [count * (count - 1) // 2, 0]


def test_parts_of_the_file_are_given_back_with_their_arrays(ended: dict[str, object]) -> None:
    assert int(str(ended["left"])) < 1 << 20  # what the file system itself needs


def test_memory_given_back_serves_the_next_array(tmp_path: Path) -> None:
    seen = _run(AGAIN, file_memory.variables(tmp_path, 1 << 23, resident_bytes=1 << 26))
    assert int(str(seen["again"])) < 4 <= int(str(seen["first"]))
    assert seen["zeros"] == 0


def test_a_part_of_the_file_serves_the_next_array_and_no_more_stays_than_asked_for(tmp_path: Path) -> None:
    library = file_memory.variables(tmp_path, 1 << 23, kept_bytes=1 << 24)
    seen = _run(FILES_AGAIN, library)
    assert (seen["places"], seen["sums"]) == (1, [0.0, 0.0, 0.0])
    assert [round(int(str(seen[name])) / (1 << 24), 1) for name in ("kept", "freed")] == [1, 1]


def test_a_process_that_is_forked_while_threads_take_memory_takes_its_own(tmp_path: Path) -> None:
    assert _run(FORKS, file_memory.variables(tmp_path, resident_bytes=1 << 26))["all_end"]


def test_without_a_compiler_all_stays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert file_memory.variables(tmp_path) == {}
