"""Stretches that HLO operations are charged with, of executions whose times are chosen by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.capture.tables.charged import charged_stretches
from neuron_tools.capture.template import make_template
from neuron_tools.records.executable import Executable
from tests.unit.capture.programs import fused_executable


def _stretches(executable: Executable) -> list[tuple[int, int]]:
    """Of `fused_graph`'s two operations that execute something, and of the third."""
    stretches = charged_stretches(make_template(executable))
    return list(zip(stretches.start_ns.tolist(), stretches.end_ns.tolist()))


def _moved(executable: Executable, **columns: list[int]) -> Executable:
    """The executable with other times, in ns."""
    times = {name: np.array(values, np.int64) * 1000 for name, values in columns.items()}
    return replace(executable, simulation=replace(executable.simulation, **times))


def test_operations_one_after_another_have_their_intervals() -> None:
    assert _stretches(fused_executable())[:2] == [(0, 2500), (2500, 5000)]


def test_what_executes_nothing_has_no_stretch() -> None:
    start, end = _stretches(fused_executable())[2]
    assert start == end


def test_a_transfer_that_starts_long_before_is_hidden_by_what_computes_meanwhile() -> None:
    early = _moved(
        fused_executable(),
        start_ps=[0, 100, 2000, 2300], end_ps=[100, 2000, 2300, 2400],
        ready_ps=[0, 100, 2000, 2300], dma_start_ps=[50, 100], dma_end_ps=[100, 2500],
    )  # fmt: skip
    template = make_template(early)
    assert (template.hlo.start_ns[1], template.hlo.end_ns[1]) == (100, 2500)
    assert _stretches(early)[:2] == [(0, 2300), (2300, 2500)]


def test_time_in_which_nothing_runs_stays_free() -> None:
    pausing = _moved(fused_executable(), dma_start_ps=[1000, 6000], dma_end_ps=[2000, 7000])
    template = make_template(pausing)
    stretches = charged_stretches(replace(template, framework_rows=template.framework_rows[:0]))
    assert (stretches.end_ns - stretches.start_ns)[:2].tolist() == [50 + 1000 + 250 + 150, 50 + 1000]
    assert stretches.end_ns.max() == 7000
