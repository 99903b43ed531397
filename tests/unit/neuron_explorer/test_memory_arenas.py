"""Threads of the Explorer's server share what glibc calls arenas."""

import platform
import subprocess
import sys

import pytest

# Each thread frees what it took; malloc_info tells in how many arenas (heaps) that lies.
SCRIPT = """
import ctypes, sys, tempfile
from threading import Barrier, Thread
from neuron_explorer.memory_arenas import share_arenas

if sys.argv[1] == "shared":
    assert share_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
together = Barrier(16)

def take():
    together.wait()
    for _ in range(200):
        libc.free(ctypes.c_void_p(libc.malloc(5000)))
    together.wait()

threads = [Thread(target=take) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
def test_sixteen_threads_take_two_arenas():
    def arenas(how):
        command = [sys.executable, "-c", SCRIPT, how]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert arenas("shared") == 2 < arenas("as it is")
