"""Advice on functions of which torch.compile made several graphs."""

from __future__ import annotations

from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.advice.rules import graph_breaks
from neuron_profile.analysis.warnings import ProfileWarning
from neuron_tools.records.graph_break import GRAPH_BREAK, GraphBreak
from tests.fixtures.gpu_trace import gpu_document
from tests.unit.profile.importers.importing import imported

OF_A_LIBRARY = GraphBreak("/lib/loss.py", 12, "train.py", 4, "logging is not supported", "Ignore `it`.")


def test_a_break_is_told_at_the_users_line_with_dynamos_hint(tmp_path, monkeypatch):
    warnings = (ProfileWarning(GRAPH_BREAK, OF_A_LIBRARY.message, 2), ProfileWarning("log", "Damaged.", 1))
    monkeypatch.setattr(graph_breaks, "find_warnings", lambda profile: warnings)
    with imported(tmp_path, gpu_document()) as profile:
        (found,) = [finding for finding in advise(profile) if finding.rule == "graph_breaks"]
    assert (str(found.place), str(found.library_place)) == ("train.py:4", "/lib/loss.py:12")
    assert found.title.endswith("ends a graph here: logging is not supported")
    assert found.change.startswith("Ignore it. ")
    assert found.gain_ns is None
