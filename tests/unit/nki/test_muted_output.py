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
        print("kernel", prints, file=sys.stderr)
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
