"""Advice on graphs that the compiler refused."""

from __future__ import annotations

from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.advice.rules import uncompiled
from neuron_profile.analysis.warnings import ProfileWarning
from neuron_tools.records.capture_log import NOT_COMPILED
from tests.fixtures.gpu_trace import gpu_document
from tests.unit.profile.importers.importing import imported


def test_a_graph_without_device_time_is_told_first(tmp_path, monkeypatch):
    refused = (
        "step_0_train.py:20 could not be compiled and takes no device time (LoweringFailure: aten::histc)."
    )
    warnings = (
        ProfileWarning("compiler", "aten::det has no native lowering.", 1),
        ProfileWarning(NOT_COMPILED, refused, 2),
    )
    monkeypatch.setattr(uncompiled, "find_warnings", lambda profile: warnings)
    with imported(tmp_path, gpu_document()) as profile:
        first, *others = advise(profile)
    assert (first.rule, str(first.place)) == ("uncompiled", "step_0_train.py:20")
    assert first.title == refused.removesuffix(".")
    assert {each.rule for each in others} == {"device_traces"}
