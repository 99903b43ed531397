"""torch.profiler traces: streams, flows, sources, memory, ranks."""

from __future__ import annotations

import gzip
import json

import pytest

from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.verify import verify
from tests.fixtures.foreign_traces import BASE_NS, kineto_document
from tests.unit.profile.importers.importing import imported, rows, spans


def test_device_streams_stand_under_their_device_in_the_process(tmp_path):
    with imported(tmp_path, kineto_document()) as profile:
        tracks = rows(
            profile,
            "SELECT t.name, t.kind, t.device_idx, p.name AS parent FROM TraceTrack t LEFT JOIN TraceTrack p"
            " ON p.track_idx = t.parent_track_idx AND p.process_idx = t.process_idx"
            " WHERE t.kind <> 'counter' ORDER BY 1",
        )
        processes = rows(profile, "SELECT name, process_id, rank, host FROM ProcessInfo")

    assert tracks == [
        ("GPU 0", "other", 0, None),
        ("PyTorch Profiler", "annotation", None, None),
        ("stream 7", "stream", 0, "GPU 0"),
        ("thread 77 (python)", "thread", None, None),
    ]
    assert processes == [("python", 77, 0, "host-0")]


def test_a_launch_and_its_kernel_share_a_flow_and_a_correlation(tmp_path):
    with imported(tmp_path, kineto_document()) as profile:
        found = rows(
            profile,
            "SELECT a.name, b.name AS kernel, a.correlation_id = b.correlation_id AS same FROM Flow f"
            " JOIN TraceSpan a ON a.id = f.in_id JOIN TraceSpan b ON b.id = f.out_id",
        )

    assert found == [("cudaLaunchKernel", "ncclAllReduce", True)] * 6


def test_python_functions_have_their_line(tmp_path):
    with imported(tmp_path, kineto_document()) as profile:
        found = rows(
            profile,
            "SELECT DISTINCT name, source_file, source_line FROM TraceSpan WHERE source_line IS NOT NULL",
        )

    assert found == [("train.py(12): step", "train.py", 12)]


def test_memory_events_are_samples_of_a_counter(tmp_path):
    with imported(tmp_path, kineto_document()) as profile:
        found = rows(
            profile,
            "SELECT c.value FROM TraceCounter c JOIN TraceTrack t USING (process_idx, track_idx)"
            " WHERE t.name = 'CPU memory Total Allocated' ORDER BY timestamp",
        )

    assert found == [(float(step),) for step in range(6)]


def test_times_count_from_the_first_event_and_are_tied_to_the_wall_clock(tmp_path):
    with imported(tmp_path, kineto_document()) as profile:
        first = spans(profile)[0]
        ((start, offset),) = rows(profile, "SELECT start_unix_ns, clock_offset_ns FROM ProcessInfo")
        breaches = verify(profile)

    assert first == ("PyTorch Profiler", "PyTorch Profiler (0)", 0, 900_000)
    assert start == BASE_NS + 4_410_492_006_129_002
    assert offset == -4_410_492_006_129_002
    assert breaches == []


def test_a_packed_trace_is_the_same(tmp_path):
    content = json.dumps(kineto_document()).encode()
    with imported(tmp_path, content) as profile:
        expected = spans(profile)
    with imported(tmp_path, gzip.compress(content)) as profile:
        assert spans(profile) == expected


def test_ranks_of_one_host_share_its_clock(tmp_path):
    with imported(tmp_path, kineto_document(0), kineto_document(1, skew_us=250)) as profile:
        clocks = rows(profile, "SELECT rank, clock_uncertainty_ns FROM ProcessInfo ORDER BY process_idx")
        starts = rows(
            profile, "SELECT min(start_ts) AS s FROM TraceSpan GROUP BY process_idx ORDER BY process_idx"
        )

    assert clocks == [(0, 0), (1, 0)]
    assert starts == [(0,), (250_000,)]


def test_clocks_of_other_hosts_are_brought_together_by_collectives(tmp_path):
    other = kineto_document(1, host="host-1", skew_us=5_000)
    with imported(tmp_path, kineto_document(0), other) as profile:
        ends = rows(
            profile,
            "SELECT end_ts, count(*) AS n FROM TraceSpan WHERE name = 'ncclAllReduce' GROUP BY 1 ORDER BY 1",
        )
        ((uncertainty,),) = rows(profile, "SELECT clock_uncertainty_ns FROM ProcessInfo WHERE rank = 1")

    assert [count for _, count in ends] == [2] * 6
    assert 0 <= uncertainty <= 1_000


def test_clocks_that_cannot_be_related_are_told_of_and_not_given_an_order(tmp_path):
    other = kineto_document(1, host="host-1")
    other["baseTimeNanoseconds"] = 0
    other["traceEvents"] = [e for e in other["traceEvents"] if "nccl" not in e["name"]]
    with imported(tmp_path, kineto_document(0), other) as profile:
        offsets = rows(
            profile, "SELECT clock_offset_ns IS NULL AS unrelated FROM ProcessInfo ORDER BY process_idx"
        )
        warnings = rows(profile, "SELECT message FROM Warning WHERE category = 'Clock'")

    assert offsets == [(False,), (True,)]
    assert "cannot be related" in warnings[0][0]


def test_ids_stay_unique_and_flows_true_when_files_are_joined(tmp_path):
    with imported(tmp_path, kineto_document(0), kineto_document(1)) as profile:
        assert verify(profile) == []
        found = rows(
            profile,
            "SELECT count(*) AS n FROM Flow f JOIN TraceSpan a ON a.id = f.in_id"
            " JOIN TraceSpan b ON b.id = f.out_id AND a.process_idx = b.process_idx",
        )

    assert found == [(12,)]


def test_the_destination_is_never_overwritten_by_accident(tmp_path):
    (tmp_path / "trace").write_text(json.dumps(kineto_document()))
    import_traces([tmp_path / "trace"], tmp_path / "out.nprof")
    with pytest.raises(Exception, match="exists"):
        import_traces([tmp_path / "trace"], tmp_path / "out.nprof")


def test_a_rank_that_is_no_number_is_not_known(tmp_path):
    document = kineto_document()
    document["distributedInfo"] = {"rank": True, "world_size": False}
    with imported(tmp_path, json.dumps(document).encode()) as profile:
        assert rows(profile, "SELECT DISTINCT rank FROM ProcessInfo") == [(None,)]
