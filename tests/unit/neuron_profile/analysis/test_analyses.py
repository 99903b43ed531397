"""Every analysis gives a result on every kind of profile, or says which data it lacks."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

import neuron_tools
from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.analyses import ANALYSES, run_analysis
from neuron_profile.analysis.errors import LacksDataError
from neuron_profile.analysis.idle_reasons import PARTS, idle_reasons
from neuron_profile.analysis.overview import make_overview
from neuron_profile.analysis.whatif.causal import find_causes
from neuron_profile.reports.analysis_text import as_json
from neuron_tools.profile.writer import ProfileWriter
from tests.unit.neuron_profile.analysis.device_only import open_device_profile
from tests.unit.neuron_profile.analysis.traces.tiny_trace import open_trace
from tests.unit.neuron_profile.small_capture import METADATA, Step, loads, open_capture, program


@contextmanager
def open_empty(folder):
    ProfileWriter(folder / "empty.nprof", METADATA).close(True)
    with neuron_tools.open_profile(folder / "empty.nprof") as profile:
        yield profile


def open_small(folder):
    return open_capture(folder, [program([("load", 6)], loads(8, 4096))], [Step(0, wait_line=3)] * 4)


KINDS = {"capture": open_small, "trace": open_trace, "device": open_device_profile, "empty": open_empty}
HAVE = {
    "capture": {"critical-path", "expected"},
    "trace": {"idle", "kernels", "queue", "critical-path", "communication"},
    "device": {"idle", "critical-path"},
    "empty": set(),
}


@pytest.mark.parametrize("name", ANALYSES.names())
@pytest.mark.parametrize("kind", KINDS)
def test_a_result_or_what_is_lacking(tmp_path, kind, name):
    with KINDS[kind](tmp_path) as profile:
        if name not in HAVE[kind]:
            with pytest.raises(LacksDataError, match="lacks the data for this analysis: it has no"):
                run_analysis(profile, name)
            return
        result = run_analysis(profile, name)
    assert json.loads(as_json(name, result))["analysis"] == name


@pytest.mark.parametrize("kind", KINDS)
def test_summary_advice_and_causes_take_any_profile(tmp_path, kind):
    with KINDS[kind](tmp_path) as profile:
        make_overview(profile)
        advise(profile)
        causes = find_causes(Context(profile))
    assert (causes is not None) == (kind == "capture")


def test_a_device_profile_is_one_execution(tmp_path):
    with open_device_profile(tmp_path) as profile:
        rows = idle_reasons(profile)
    assert {row.engine for row in rows} == {"Sync", "Tensor", "Vector", "Scalar"}
    assert all(row.window_ns == sum(getattr(row, part) for part in PARTS) == 120 for row in rows)
