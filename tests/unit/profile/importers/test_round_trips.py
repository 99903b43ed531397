"""Ours to Perfetto or Chrome and back: spans, hierarchy, times and arguments stay as they are."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.traces.breakdown import break_down
from neuron_tools.profile.export import export_chrome, export_perfetto
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.reader import open_profile
from tests.fixtures.gpu_trace import gpu_document
from tests.fixtures.synthetic_profile import synthetic_profile
from tests.fixtures.timelines import timeline_of
from tests.unit.profile.importers.importing import imported, rows

FORMATS = {"perfetto": export_perfetto, "chrome": export_chrome}


@pytest.fixture(params=FORMATS)
def export(request):
    return FORMATS[request.param]


def there_and_back(profile, export, folder):
    export(profile, folder / "exported.trace")
    import_traces([folder / "exported.trace"], folder / "back.nprof")
    return open_profile(folder / "back.nprof")


def difference(first, second):
    return list((first - second).items())[:3], list((second - first).items())[:3]


def test_a_profile_shows_the_same_timeline_after_a_round_trip(export, tmp_path):
    original = synthetic_profile(120)
    with there_and_back(original, export, tmp_path) as back:
        before, after = timeline_of(original), timeline_of(back)

    assert difference(before.spans, after.spans) == ([], [])
    assert difference(before.samples, after.samples) == ([], [])
    assert difference(before.edges, after.edges) == ([], [])


def test_streams_stay_those_of_their_device_in_chrome_traces(tmp_path):
    tracks = "SELECT name, kind, device_idx, thread_id FROM TraceTrack ORDER BY track_idx"
    with (
        imported(tmp_path, gpu_document()) as original,
        there_and_back(original, export_chrome, tmp_path) as back,
    ):
        assert rows(back, tracks) == rows(original, tracks)
        assert break_down(back) == break_down(original)
