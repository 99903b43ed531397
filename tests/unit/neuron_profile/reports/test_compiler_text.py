"""The line on what the compiler of NKI kernels changed."""

from __future__ import annotations

from neuron_profile.analysis.compiler_changes import PassChange
from neuron_profile.reports.compiler_text import compiler_line


def test_nothing_is_said_where_nothing_was_changed():
    assert compiler_line(()) == ""


def test_the_line_names_the_passes_with_their_amounts():
    changes = (
        PassChange("redundant", 28, 0, 4_220_000, 9_000, 2),
        PassChange("spill", 0, 1, -2_000_000, -4_000, 1),
        PassChange("merge", 18, 0, 0, 0, 2),
        PassChange("fills", 1, 0, 0, 0, 1),
    )
    assert compiler_line(changes) == (
        "The compiler changed NKI kernels: loaded once what does not change (28 instructions fewer, "
        "4.22 MB of HBM less); spilled what SBUF does not hold (1 instruction more, 2.00 MB of HBM "
        "more); joined transfers (18 instructions fewer); 1 more in the table Transformation."
    )
