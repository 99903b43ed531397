"""Ours to Perfetto or Chrome and back: spans, hierarchy, times and arguments stay as they are."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.traces.breakdown import break_down
from neuron_profile.analysis.traces.overview import look_at_trace
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


def test_streams_stay_those_of_their_device(export, tmp_path):
    number = "CASE kind WHEN 'stream' THEN thread_id END"
    tracks = f"SELECT name, kind, device_idx, {number} FROM TraceTrack ORDER BY ALL"
    with (
        imported(tmp_path, gpu_document()) as original,
        there_and_back(original, export, tmp_path) as back,
    ):
        assert rows(back, tracks) == rows(original, tracks)
        assert break_down(back) == break_down(original)


def test_neuron_cores_stay_devices_that_did_the_same(export, tmp_path):
    original = synthetic_profile(120)
    with there_and_back(original, export, tmp_path) as back:
        trace = look_at_trace(back)
        ranks = rows(back, "SELECT rank FROM ProcessInfo ORDER BY 1")

    devices = {(device.rank, device.device): device for device in trace.devices}
    spans = {
        name: original.sql(
            f"SELECT rank, coalesce(pcore_idx, 0), start_ts, end_ts FROM {name}"
            " JOIN ProcessInfo USING (process_idx) ORDER BY start_ts"
        ).fetchall()
        for name in ("Instruction", "CcOp")
    }
    assert ranks == [(0,), (1,)]
    assert set(devices) == {(rank, core) for rank, core, *_ in spans["Instruction"]}
    for key, device in devices.items():
        instructions, collectives = (
            [row[2:] for row in spans[name] if row[:2] == key] for name in ("Instruction", "CcOp")
        )
        assert device.name == f"NeuronCore {key[1]}"
        assert (device.kernels, device.computes) == (len(instructions), "instruction")
        assert device.collectives == len(collectives)
        assert device.time.computing_ns == busy_ns(instructions)


def busy_ns(spans):
    """Length of the union of spans in order of start."""
    busy, reached = 0, 0
    for start, end in spans:
        busy += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return busy
