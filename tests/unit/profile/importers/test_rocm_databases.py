"""rocpd and ROCm Profile Data: work, calls, samples, counters and memory where they belong, linked."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from neuron_profile.analysis.traces.breakdown import break_down
from neuron_tools.profile.importers import TraceError, import_traces
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.verify import verify
from tests.fixtures.profiler_exports import PID, TID, database_of
from tests.fixtures.rocm_databases import GPU, ROCPD, RPD, rocpd_database, rpd_database
from tests.unit.profile.importers.importing import imported, rows, written

SPANS = (
    "SELECT t.name AS track, t.device_idx, s.name, s.category, s.start_ts, s.duration_ns, s.correlation_id"
    " FROM TraceSpan s JOIN TraceTrack t USING (process_idx, track_idx)"
    " ORDER BY s.start_ts, s.duration_ns DESC"
)
COUNTERS = (
    "SELECT t.name, t.unit, c.timestamp, c.value FROM TraceCounter c JOIN TraceTrack t"
    " USING (process_idx, track_idx) ORDER BY t.name, c.timestamp"
)


def test_work_calls_and_samples_stand_where_they_ran(tmp_path):
    with imported(tmp_path, rocpd_database()) as profile:
        found = rows(profile, SPANS)
        process = rows(profile, "SELECT process_id, command, host, rank FROM ProcessInfo")
        devices = rows(profile, "SELECT device_idx, name, compute_unit_count FROM Device")
        assert verify(profile) == []

    thread = (f"thread {TID}", None)
    assert found == [
        ("Thread 0 Timer (S)", None, "main", "timer_sampling", 0, 4_200, None),
        (*thread, "forward", "user_annotation", 100, 800, 30),
        ("loader", None, "alloc real", "memory", 120, 20, None),
        (*thread, "aten::mm", "cpu_op", 150, 500, 32),
        (*thread, "hipLaunchKernel", "hip_runtime", 200, 400, 20),
        (*thread, "step 1", "user_annotation", 850, 0, 31),
        ("Stream 0", 0, "gemm(float*)", "kernel", 1_200, 3_000, 20),
        ("copies", 0, "Memcpy HtoD", "gpu_memcpy", 4_700, 500, 21),
        ("loader", None, "free real", "memory", 5_300, 100, None),
    ]
    assert process == [(PID, "python train.py", "mi300", 3)]
    assert devices == [(0, "AMD Instinct MI300X", 304)]


def test_what_events_carry_is_kept(tmp_path):
    query = (
        "SELECT category, arguments_json, source_file, source_line FROM TraceSpan"
        " WHERE arguments_json IS NOT NULL"
    )
    with imported(tmp_path, rocpd_database()) as profile:
        found = {row[0]: (json.loads(row[1]), *row[2:]) for row in rows(profile, query)}

    (sampled, file, line) = found["timer_sampling"]
    assert (sampled["depth"], sampled["call stack"]["pc"], file, line) == (0, "4012F0", "train.cpp", 12)
    assert found["cpu_op"][0] == {"Sequence number": 12}
    assert found["gpu_memcpy"][0] == {"bytes": 4_096}
    assert found["kernel"][0] == {
        "device": 0,
        "stream": 3,
        "queue": 1,
        "grid": [512, 2, 1],
        "workgroup": [64, 1, 1],
        "registers per thread": 64,
        "shared memory": 1_024,
    }


def test_counters_of_kernels_and_samples_and_memory_have_their_tracks(tmp_path):
    with imported(tmp_path, rocpd_database()) as profile:
        found = rows(profile, COUNTERS)

    assert found == [
        ("GPU 0: SQ_WAVES", None, 1_200, 12.0),
        ("GPU 0: SQ_WAVES", None, 4_200, 0.0),
        ("GPU 0: memory allocated", "bytes", 140, 1_000.0),
        ("GPU 0: memory allocated", "bytes", 5_400, 0.0),
        ("GPU 0: power", "W", 1_700, 300.5),
    ]


def test_tables_that_are_not_read_are_named_without_their_endings(tmp_path):
    report = import_traces([written(tmp_path, "trace", rocpd_database())], tmp_path / "out.nprof")

    assert report.formats[str(tmp_path / "trace")] == "rocpd"
    assert report.warnings == ("trace: Tables that are not read were left out: rocpd_arg, rocpd_hip_event.",)


def test_work_without_a_stream_stands_on_its_queue(tmp_path):
    columns = "id, nid, pid, agent_id, kernel_id, queue_id, stream_id, start, end, event_id"
    kernel = (
        columns,
        [(1, 5, PID, GPU, 8, 1, 0, 2_000, 5_000, 3), (2, 5, PID, GPU, 9, 7, 0, 5_000, 6_000, None)],
    )
    with imported(tmp_path, rocpd_database(kernel_dispatch=kernel)) as profile:
        found = rows(profile, SPANS.replace("ORDER", "WHERE s.category = 'kernel' ORDER"))

    assert [row[:3] for row in found] == [("Queue 0", 0, "gemm(float*)"), ("queue 7", 0, "kernel 9")]


def test_rows_that_name_only_their_track_stand_where_it_stands(tmp_path):
    track = (
        "id, nid, pid, tid, agent_id, queue_id, stream_id, name_id",
        [(1, 5, PID, TID, GPU, 1, 3, 6), (2, 5, PID, TID, None, None, None, 12)],
    )
    kernel = ("id, track_id, kernel_id, start, end, event_id", [(1, 1, 8, 2_000, 5_000, 3)])
    region = ("id, track_id, name_id, start, end, event_id", [(20, 2, 2, 1_000, 1_400, 1)])
    category = ("id, name", [(1, "hip_api"), (3, "kernel")])
    changes = {"track": track, "kernel_dispatch": kernel, "region": region, "info_category": category}
    rest = dict.fromkeys(("sample", "memory_copy", "memory_allocate", "pmc_event"))
    with imported(tmp_path, rocpd_database(**changes, **rest)) as profile:
        found = rows(profile, SPANS)

    assert found == [
        (f"thread {TID}", None, "hipLaunchKernel", "hip_runtime", 0, 400, 20),
        ("Stream 0", 0, "gemm(float*)", "kernel", 1_000, 3_000, 20),
    ]


def test_processes_of_a_merged_database_stay_apart(tmp_path):
    one, other = rocpd_database("_a"), rocpd_database("_b", info_node=("id, hostname", [(5, "mi301")]))
    with imported(tmp_path, _merged(tmp_path, one, other)) as profile:
        processes = rows(profile, "SELECT process_id, host FROM ProcessInfo ORDER BY host")
        spans = rows(profile, "SELECT count(*) AS n FROM TraceSpan GROUP BY process_idx")
        devices = rows(profile, "SELECT name FROM Device")
        assert verify(profile) == []

    assert processes == [(PID, "mi300"), (PID, "mi301")]
    assert spans == [(9,), (9,)]
    assert len(devices) == 2


def _merged(folder, one, other):
    paths = [written(folder, name, content) for name, content in (("one", one), ("other", other))]
    with sqlite3.connect(paths[0]) as database:
        database.execute("ATTACH ? AS other", [str(paths[1])])
        tables = database.execute("SELECT name, sql FROM other.sqlite_master WHERE type = 'table'").fetchall()
        for name, sql in tables:
            database.execute(sql)
            database.execute(f"INSERT INTO {name} SELECT * FROM other.{name}")
    database.close()
    return paths[0].read_bytes()


def test_releases_of_what_was_allocated_before_are_told(tmp_path):
    free = (
        "id, pid, tid, type, level, start, end, address, size",
        [(1, PID, TID, "FREE", "REAL", 10, 20, 5, 0), (2, PID, TID, "ALLOC", "SCRATCH", 30, 40, 0, 64)],
    )
    export = rocpd_database(memory_allocate=free, hip_event=None, arg=None)
    report = import_traces([written(tmp_path, "trace", export)], tmp_path / "out.nprof")

    assert report.warnings == (
        "trace: Releases of memory that was allocated before the trace were not counted.",
    )


def test_values_that_are_no_json_and_rows_without_a_time_are_told_or_left_out(tmp_path):
    event = (
        "id, category_id, stack_id, extdata, call_stack, line_info",
        [(2, 6, 30, "{oops", "[" * 5_000, '{"inlined": {"location": 5, "line": "x"}}')],
    )
    region = (
        "id, pid, tid, start, end, name_id, event_id",
        [(1, PID, TID, None, 5, 7, 2), (2, PID, TID, 900, 950, 7, 2)],
    )
    rest = dict.fromkeys(("sample", "pmc_event", "hip_event", "arg"))
    export = rocpd_database(event=event, region=region, **rest)
    report = import_traces([written(tmp_path, "trace", export)], tmp_path / "out.nprof")
    with imported(tmp_path, export) as profile:
        found = rows(profile, "SELECT name, source_file FROM TraceSpan WHERE category = 'user_annotation'")

    assert report.warnings == ("trace: Rows of rocpd_region without a time were left out.",)
    assert found == [("roctxThreadRangeA", None)]


def test_operations_calls_and_markers_of_rocm_profile_data_stand_where_they_ran(tmp_path):
    with imported(tmp_path, rpd_database()) as profile:
        found = rows(profile, SPANS)
        counters = rows(profile, COUNTERS)
        (device,) = break_down(profile).devices
        assert verify(profile) == []

    thread = (f"thread {TID}", None)
    assert found == [
        (*thread, "forward", "user_annotation", 0, 800, 22),
        (*thread, "hipLaunchKernel", "hip_runtime", 100, 400, 20),
        (*thread, "hipMemcpy", "hip_runtime", 600, 100, 21),
        ("queue 0", 2, "gemm(float*)", "kernel", 1_100, 3_000, 20),
        ("queue 0", 2, "Memcpy HtoD", "gpu_memcpy", 4_600, 500, 21),
        ("thread 50", None, "OpTable::writeRows", "overhead", 6_100, 100, 23),
    ]
    assert counters == [("GPU 2: sclk", "MHz", 100, 800.0), ("GPU 2: sclk", "MHz", 1_100, 1_700.0)]
    assert (device.computing_ns, device.exposed_memory_ns) == (3_000, 500)


def test_sizes_of_rocm_profile_data_are_arguments(tmp_path):
    query = "SELECT name, arguments_json FROM TraceSpan WHERE arguments_json IS NOT NULL"
    with imported(tmp_path, rpd_database()) as profile:
        found = {name: json.loads(text) for name, text in rows(profile, query)}

    assert found == {
        "gemm(float*)": {"grid": [4, 2, 1], "workgroup": [256, 1, 1]},
        "Memcpy HtoD": {"bytes": 4_096},
        "hipMemcpy": {"arguments": "size=4096"},
    }


def test_arguments_of_version_3_stand_in_a_table_of_their_own(tmp_path):
    own = ("id INTEGER PRIMARY KEY, string TEXT", [(4, "aten::mm, seq = 3, op_id = 1")])
    with imported(tmp_path, rpd_database(rocpd_ustring=own)) as profile:
        found = rows(profile, "SELECT name FROM TraceSpan WHERE category = 'cpu_op'")

    assert found == [("aten::mm",)]


def test_operations_of_several_processes_belong_to_their_callers(tmp_path):
    calls = (
        "id, pid, tid, start, end, apiName_id, args_id",
        [(20, PID, TID, 1_000, 1_400, 2, 1), (21, 99, 98, 1_500, 1_600, 8, 1)],
    )
    query = (
        "SELECT p.process_id, s.category FROM TraceSpan s JOIN ProcessInfo p USING (process_idx)"
        " ORDER BY s.start_ts"
    )
    with imported(tmp_path, rpd_database(rocpd_api=calls, rocpd_monitor=None)) as profile:
        found = rows(profile, query)

    assert found == [(PID, "hip_runtime"), (99, "hip_runtime"), (PID, "kernel"), (99, "gpu_memcpy")]


@pytest.mark.parametrize("tables", [{}, {"people": ("name", []), "rocpd_string": ("id, string", [])}])
def test_a_database_that_is_no_trace_is_told_by_its_tables(tmp_path, tables):
    path = written(tmp_path, "trace", database_of(tables) or b"")
    sentence = "its tables: people, rocpd_string" if tables else "is empty"
    with pytest.raises(TraceError, match=sentence):
        import_traces([path], tmp_path / "out.nprof")


def test_a_counters_whole_number_that_no_float_equals_is_taken_as_the_nearest(tmp_path):
    values = [(1, "g", 3, 21, 8.0), (2, "g", 3, 21, 2**53 + 1), (3, "g", 9, 22, 300.5)]
    database = rocpd_database(pmc_event=("id, guid, event_id, pmc_id, value", values))
    with imported(tmp_path, database) as profile:
        assert verify(profile) == []


ANY = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 40) | st.floats() | st.text(max_size=6)
    | st.binary(max_size=4) | st.sampled_from(["{}", '{"message": 1}', "9" * 19, "ALLOC", "FREE"])
)  # fmt: skip


@st.composite
def spoilt(draw, tables):
    """Some tables with a few values of any type in place of theirs."""
    changes = {}
    for name in draw(st.lists(st.sampled_from(sorted(tables)), min_size=1, max_size=3, unique=True)):
        columns, found = tables[name]
        names = ", ".join(column.split()[0] for column in columns.split(","))  # without types and keys
        changes[name] = (names, [tuple(draw(st.just(value) | ANY) for value in row) for row in found])
    return changes


@pytest.mark.parametrize(("database", "tables"), [(rocpd_database, ROCPD), (rpd_database, RPD)])
def test_values_of_any_type_end_in_a_sound_profile_or_one_sentence(database, tables, tmp_path):
    @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(spoilt(tables))
    def check(changes):
        sentence = _sentence(written(tmp_path, "trace", database(**changes)), tmp_path / "out.nprof")
        assert "\n" not in sentence
        if not sentence:
            with open_profile(tmp_path / "out.nprof") as profile:
                assert verify(profile) == []

    check()


def _sentence(path, destination):
    try:
        import_traces([path], destination, force=True)
    except TraceError as error:
        return str(error)
    return ""
