"""What kernels print in runs that only show what would be."""

from __future__ import annotations

import sys
import threading

from neuron_tools import hardware
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.muted_output import muted


def _print_in_a_kernel(prints):
    trace = tracing.Tracer(hardware.get("trn2"))
    trace.prints = prints
    before = tracing.activate(trace)
    try:
        print("kernel", prints)
        sys.stderr.writelines([f"kernel {prints}", "\n"])
    finally:
        tracing.activate(before)


def test_only_kernels_that_do_not_print_are_left_out(capsys):
    with muted():
        _print_in_a_kernel(prints=False)
        _print_in_a_kernel(prints=True)
        program = threading.Thread(target=print, args=("program",))
        program.start()
        program.join()
    _print_in_a_kernel(prints=False)
    printed = capsys.readouterr()
    assert printed.out == "kernel True\nprogram\nkernel False\n"
    assert printed.err == "kernel True\nkernel False\n"


def test_blocks_that_end_in_the_order_of_their_beginnings_give_the_streams_back():
    before = sys.stdout, sys.stderr
    first, second = muted(), muted()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.stdout is not before[0]
    second.__exit__(None, None, None)
    assert (sys.stdout, sys.stderr) == before


def test_without_an_output_nothing_is_printed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with muted():
        print("to nobody")
