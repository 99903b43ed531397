"""AWS's device and system profile JSON into the published tables."""

from __future__ import annotations

import json

from neuron_tools.profile.export import export_neuron_json
from neuron_tools.profile.verify import verify
from tests.fixtures.foreign_traces import BASE_NS, device_profile, system_profile
from tests.unit.profile.importers.importing import imported, rows


def test_instructions_keep_ids_times_and_dependencies(tmp_path):
    with imported(tmp_path, device_profile()) as profile:
        found = rows(
            profile,
            "SELECT id, start_ts, end_ts, engine, timeline_track, opcode, evt_wait_time_ns, pcore_idx"
            " FROM Instruction ORDER BY id LIMIT 1",
        )
        edges = rows(profile, "SELECT in_id, count(*) AS n FROM Flow GROUP BY 1")

    assert found == [(6600704491848368176, 84, 154, "Tensor", "TensorMatrix", "MATMUL", 29, 0)]
    assert edges == [(6600704491848368176, 3)]


def test_packets_become_transfers(tmp_path):
    with imported(tmp_path, device_profile()) as profile:
        found = rows(
            profile,
            "SELECT id, start_ts, end_ts, read_bytes, packet_count, queue_name FROM DmaPacketAggregated"
            " ORDER BY id",
        )

    assert found == [
        (3161790117270724135, 100, 266, 8192, 2, "Q0-E64"),
        (3161790117270724136, 120, 286, 8192, 2, "Q0-E64"),
    ]


def test_what_follows_from_the_rows_is_derived_and_the_tools_own_summary_kept(tmp_path):
    with imported(tmp_path, device_profile()) as profile:
        ((busy,),) = rows(profile, "SELECT sum(duration_ns) AS ns FROM ActiveTime WHERE engine = 'tensor'")
        summary = profile.summary()
        breaches = verify(profile)

    assert busy == 280
    assert summary["total_time"] == 5e-7
    assert breaches == []


def test_usage_throttling_and_warnings_are_kept(tmp_path):
    with imported(tmp_path, device_profile()) as profile:
        assert rows(profile, "SELECT timestamp, avg_util_percent FROM SbufUsage") == [(90, 0.25)]
        assert rows(profile, "SELECT bank_0_util_percent FROM PsumUsage") == [(1.0,)]
        assert rows(profile, "SELECT duration, k, n, type FROM Throttle") == [(50, 4, 8, "1")]
        assert rows(profile, "SELECT category FROM Warning") == [("Missing Data",)]
        assert rows(profile, "SELECT tensor_engine_clock_freq, is_simulation FROM Metadata") == [(2.4, False)]


def test_host_events_know_their_core_and_source(tmp_path):
    with imported(tmp_path, system_profile()) as profile:
        found = rows(
            profile,
            "SELECT name, start_ts, duration_ns, nc_idx, trace_event_source, process_id"
            " FROM SystemProfileEvents ORDER BY start_ts",
        )
        ((load,),) = rows(profile, "SELECT util_percent FROM CpuUsage")
        ((attributes,),) = rows(
            profile, "SELECT extra_attributes_json FROM SystemProfileEvents WHERE nc_idx = 3"
        )

    assert found == [
        ("nrt_execute", 0, 27094, 3, "neuron_rt", 701),
        ("PjitFunction(f)", 900, 3758, None, "framework", 701),
    ]
    assert load == 0.025
    assert json.loads(attributes) == {"size": "4", "type": "11"}
    assert BASE_NS > 0


def test_our_own_json_comes_back(tmp_path):
    with imported(tmp_path, device_profile()) as profile:
        before = rows(
            profile, "SELECT id, start_ts, end_ts, engine, opcode, operands FROM Instruction ORDER BY id"
        )
        export_neuron_json(profile, tmp_path / "again.json")
    with imported(tmp_path, (tmp_path / "again.json").read_bytes()) as profile:
        after = rows(
            profile, "SELECT id, start_ts, end_ts, engine, opcode, operands FROM Instruction ORDER BY id"
        )

    assert after == before
