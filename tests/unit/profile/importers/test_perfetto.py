"""Perfetto traces: interned data, clocks, counters, flows, annotations."""

from __future__ import annotations

import json

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from tests.fixtures.foreign_traces import BASE_NS, perfetto_trace
from tests.unit.profile.importers.importing import imported, rows, spans


def test_slices_nest_on_their_threads_and_names_are_looked_up(tmp_path):
    with imported(tmp_path, perfetto_trace()) as profile:
        found = spans(profile, "s.name <> 'tick'")
        processes = rows(profile, "SELECT name, process_id FROM ProcessInfo")

    assert [(track, name, end - start) for track, name, start, end in found] == [
        ("main", "outer", 2_000),
        ("main", "inner", 200),
    ]
    assert processes == [("app", 5)]


def test_steps_of_an_incremental_clock_are_added_up(tmp_path):
    with imported(tmp_path, perfetto_trace()) as profile:
        times = {name: start for _, name, start, _ in spans(profile)}

    # The clock stood at 5 units of 1,000 ns when the main one stood at 5,000 ns; the tick is 4 units on.
    assert times["outer"] - times["tick"] == 10_000 - (5_000 + 4_000)


def test_annotations_of_every_type_are_arguments(tmp_path):
    with imported(tmp_path, perfetto_trace()) as profile:
        found = rows(
            profile,
            "SELECT arguments_json, category, source_file, source_line FROM TraceSpan WHERE name = 'outer'",
        )

    assert json.loads(found[0][0]) == {"size": -7, "text": 'a "quoted" text', "inside": {"deep": 0.5}}
    assert found[0][1:] == ("cat", "a.cc", 3)


def test_flows_counters_and_the_wall_clock_are_kept(tmp_path):
    with imported(tmp_path, perfetto_trace()) as profile:
        edges = rows(
            profile,
            "SELECT a.name, b.name AS target FROM Flow f"
            " JOIN TraceSpan a ON a.id = f.in_id JOIN TraceSpan b ON b.id = f.out_id",
        )
        samples = rows(
            profile,
            "SELECT t.name, t.unit, c.value FROM TraceCounter c"
            " JOIN TraceTrack t USING (process_idx, track_idx)",
        )
        ((start,),) = rows(profile, "SELECT start_unix_ns FROM ProcessInfo")

    assert edges == [("outer", "inner")]
    assert samples == [("memory", "bytes", 2.5)]
    assert start == BASE_NS + 4_000


def test_interned_numbers_mean_what_they_meant_when_they_were_used(tmp_path):
    trace = protos.Trace()
    for number, name in enumerate(("first", "second")):
        packet = trace.packet.add(trusted_packet_sequence_id=1, timestamp=100 * number)
        packet.sequence_flags = protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        packet.interned_data.event_names.add(iid=1, name=name)
        packet.track_event.type, packet.track_event.name_iid = protos.TrackEvent.TYPE_INSTANT, 1
    with imported(tmp_path, trace.SerializeToString()) as profile:
        assert [name for _, name, _, _ in spans(profile)] == ["first", "second"]


def test_a_trace_without_track_events_is_refused_in_one_sentence(tmp_path):
    trace = protos.Trace()
    for number in range(3):
        trace.packet.add(timestamp=number).trusted_uid = 1
    (tmp_path / "trace").write_bytes(trace.SerializeToString())
    from neuron_tools.profile.importers import TraceError, import_traces

    try:
        import_traces([tmp_path / "trace"], tmp_path / "out.nprof")
    except TraceError as error:
        message = str(error)
    assert "nothing that can be imported" in message
