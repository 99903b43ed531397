"""Advice on traces of other accelerators: what keeps their devices from computing."""

from __future__ import annotations

from neuron_profile.analysis.advice.advise import advise
from tests.fixtures.gpu_trace import COPY, REDUCE, gpu_document
from tests.unit.profile.importers.importing import imported


def titles(tmp_path, document):
    with imported(tmp_path, document) as profile:
        return [finding.title for finding in advise(profile)]


def test_exposed_collectives_and_waits_for_the_host_are_found(tmp_path):
    assert sorted(titles(tmp_path, gpu_document())) == [
        "Collectives take 435 µs in which nothing is computed",
        "The device waits for the host 12.3 % of the time",
    ]


def test_exposed_copies_are_found(tmp_path):
    document = gpu_document()
    document["traceEvents"] = [e for e in document["traceEvents"] if e["name"] != REDUCE]
    for event in document["traceEvents"]:
        if event["name"] == COPY:
            event["dur"] = 120
    found = titles(tmp_path, document)
    assert "Copies take 360 µs in which nothing is computed" in found
    assert not any("Collectives" in title for title in found)


def test_a_busy_device_needs_no_advice(tmp_path):
    document = gpu_document(steps=1)
    document["traceEvents"] = [e for e in document["traceEvents"] if e["name"] not in (REDUCE, COPY)]
    assert titles(tmp_path, document) == []
