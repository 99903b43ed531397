from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.errors import UsageError
from neuron_tools.profile.export import event_columns, export_perfetto, source
from tests.fixtures.perfetto_trace import read_trace
from tests.fixtures.synthetic_profile import MemoryProfile, instructions, synthetic_profile, table

PATH = ("Process 0", "NeuronCore 0", "Tensor")


def exported(tables, tmp_path, **options):
    path = Path(tmp_path) / "run.pftrace"
    report = export_perfetto(MemoryProfile(tables), path, force=True, **options)
    return read_trace(path), report


def spans_of(trace, *track):
    return Counter((piece.start_ns, piece.end_ns, piece.name) for piece in trace.on(*track))


def test_a_slice_carries_its_name_times_line_and_arguments(tmp_path):
    rows = instructions(
        [100],
        [170],
        operands=["dst=0x10 'quoted'"],
        layer=["/model/mlp"],
        hlo_name=["dot.1"],
        hbm_read_bytes=[4096],
        raw_flops=[1 << 40],
        source_file=["/src/train ü.py"],
        source_line=[41],
    )
    trace, report = exported({"Instruction": rows}, tmp_path)

    (piece,) = trace.slices
    assert (piece.track, piece.name, piece.start_ns, piece.end_ns) == (PATH, "MATMUL", 100, 170)
    assert piece.source == ("/src/train ü.py", 41)
    assert piece.arguments == {
        "id": 1,
        "layer": "/model/mlp",
        "operands": "dst=0x10 'quoted'",
        "hlo_name": "dot.1",
        "hbm_read_bytes": 4096,
        "raw_flops": 1 << 40,
    }
    assert report.counts["slices"] == 1


def test_pipelined_instructions_stand_on_lanes_of_the_same_name(tmp_path):
    trace, _ = exported({"Instruction": instructions([0, 5, 10], [8, 13, 18])}, tmp_path)

    assert spans_of(trace, *PATH) == Counter([(0, 8, "MATMUL"), (5, 13, "MATMUL"), (10, 18, "MATMUL")])
    assert all(piece.depth == 0 for piece in trace.slices)
    lanes = [d for d in trace.descriptors.values() if d.name == "Tensor"]
    assert len(lanes) == 2
    assert len({(lane.parent_uuid, lane.sibling_order_rank) for lane in lanes}) == 1


SPANS = st.lists(
    st.tuples(
        st.sampled_from(["Tensor", "Vector", "Sync"]),
        st.integers(0, 200),
        st.integers(0, 50) | st.integers(0, 1 << 50),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=80,
)


@given(SPANS)
@settings(max_examples=20, deadline=None)
def test_every_instruction_is_there_with_its_exact_times_and_name(spans):
    engine, start, length, name, core = (list(column) for column in zip(*spans, strict=True))
    end = (np.array(start) + np.array(length)).tolist()
    rows = instructions(start, end, engine=engine, opcode=name, pcore_idx=core)
    with TemporaryDirectory() as folder:
        trace, report = exported({"Instruction": rows}, folder)

    found = Counter((piece.track[1:], piece.name, piece.start_ns, piece.end_ns) for piece in trace.slices)
    expected = zip(core, engine, name, start, end, strict=True)
    assert found == Counter(((f"NeuronCore {c}", e), n, s, f) for c, e, n, s, f in expected)
    assert report.counts["slices"] == len(spans)


@pytest.fixture(scope="module")
def synthetic():
    return synthetic_profile(200)


@pytest.fixture(scope="module")
def whole(synthetic, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run.pftrace"
    report = export_perfetto(synthetic, path)
    return read_trace(path), report


def test_counts_and_durations_per_engine_are_those_of_the_table(synthetic, whole):
    trace, _ = whole
    totals = Counter()
    for piece in trace.slices:
        if piece.track[1].startswith("NeuronCore") and len(piece.track) == 3:
            totals[piece.track] += piece.end_ns - piece.start_ns
    names = {0: "rank 0: " + "Ünïcode 模型 🧠", 1: "rank 1: python train.py --name 'x y'"}
    for process_idx, core, engine, duration in synthetic.sql(
        "SELECT process_idx, pcore_idx, engine, sum(duration_ns) FROM Instruction GROUP BY ALL"
    ).fetchall():
        assert totals[(names[process_idx], f"NeuronCore {core}", engine)] == duration


def test_every_kind_of_row_is_exported_once(synthetic, whole):
    trace, report = whole
    assert len(trace.slices) == report.counts["slices"]
    for kind, name in (
        ("instructions", "Instruction"),
        ("dma_transfers", "DmaPacketAggregated"),
        ("framework_operations", "FrameworkInstruction"),
        ("hlo_operations", "HloInstruction"),
        ("host_spans", "HostSpan"),
        ("collectives", "CcOp"),
        ("throttling", "Throttle"),
    ):
        assert report.counts[kind] == synthetic.tables[name].num_rows, kind
    assert report.counts["runtime_events"] + report.counts["device_events"] == 50
    assert report.counts["tracks"] == len(trace.descriptors)


def test_transfers_stand_under_their_queue(synthetic, whole):
    trace, _ = whole
    found = Counter(piece.track[-1] for piece in trace.slices if "DMA queues" in piece.track)
    assert found == Counter(synthetic.tables["DmaPacketAggregated"]["queue_name"].to_pylist())


def test_a_core_orders_its_tracks_by_rank_and_a_group_by_name(whole):
    trace, _ = whole
    ordering = {d.name: d.child_ordering for d in trace.descriptors.values()}
    ranks = {d.name: d.sibling_order_rank for d in trace.descriptors.values()}

    kinds = protos.TrackDescriptor
    assert (ordering["NeuronCore 0"], ordering["DMA queues"]) == (kinds.EXPLICIT, kinds.LEXICOGRAPHIC)
    shown = ["Executions", "Framework", "HLO", "Tensor", "Vector", "Scalar", "GpSimd", "Sync", "DMA queues"]
    assert sorted(shown, key=ranks.__getitem__) == shown


def test_flows_join_the_rows_that_the_flow_table_joins(synthetic, whole):
    trace, report = whole
    flow = synthetic.tables["Flow"]
    expected = set(zip(flow["in_id"].to_pylist(), flow["out_id"].to_pylist(), strict=True))
    assert trace.edges == expected
    assert report.counts["flows"] == len(expected)


def test_flows_can_be_left_out(synthetic, tmp_path):
    report = export_perfetto(synthetic, tmp_path / "run.pftrace", flows=False)

    assert report.counts["flows"] == 0
    assert not any(piece.flows for piece in read_trace(tmp_path / "run.pftrace").slices)


def test_a_slice_with_very_many_flows_keeps_them_all(tmp_path, monkeypatch):
    monkeypatch.setattr(event_columns, "LARGEST_CHUNK_BYTES", 1 << 10)
    rows = instructions(np.arange(300), np.arange(300) + 1)
    edges = table(
        "Flow", in_id=[1] * 299, out_id=np.arange(2, 301), in_table=["Instruction"] * 299,
        out_table=["Instruction"] * 299,
    )  # fmt: skip
    trace, _ = exported({"Instruction": rows, "Flow": edges}, tmp_path)

    assert trace.edges == {(1, other) for other in range(2, 301)}


def test_an_edge_that_lacks_a_row_is_not_counted(tmp_path):
    edges = table(
        "Flow", in_id=[1, 1], out_id=[2, 99], in_table=["Instruction"] * 2, out_table=["Instruction"] * 2
    )
    trace, report = exported({"Instruction": instructions([0, 5], [5, 9]), "Flow": edges}, tmp_path)

    assert trace.edges == {(1, 2)}
    assert report.counts["flows"] == 1


def test_host_spans_nest_on_their_threads(whole):
    trace, _ = whole
    threads = {piece.track: piece for piece in trace.on("Main thread") if piece.start_ns == 1600}
    modules = [
        piece
        for piece in trace.on("Main thread")
        if piece.start_ns == 1600 and piece.arguments["kind"] == "module"
    ]
    assert len(modules) == len(threads) == 2
    assert {(module.depth, module.end_ns) for module in modules} == {(1, 3200)}


def test_counters_hold_every_sample(synthetic, whole):
    trace, report = whole
    usage = synthetic.tables["HbmUsage"]
    (series,) = [samples for path, samples in trace.samples.items() if path[-1] == "HBM bandwidth"]
    assert series == list(zip(usage["timestamp"].to_pylist(), usage["current_throughput"].to_pylist()))
    assert report.counts["counters"] == sum(len(samples) for samples in trace.samples.values()) == 200


@pytest.mark.parametrize("rows", [3, 40])
def test_batches_and_windows_do_not_change_what_is_exported(rows, tmp_path, monkeypatch):
    profile = synthetic_profile(10)
    export_perfetto(profile, tmp_path / "whole.pftrace")
    monkeypatch.setattr(source, "WINDOW_ROWS", 3 * rows)
    monkeypatch.setattr(source, "BATCH_ROWS", rows)
    monkeypatch.setattr(source.Tables.batches, "__defaults__", (rows,))

    export_perfetto(profile, tmp_path / "parts.pftrace")

    def rows_of(name):
        slices = read_trace(tmp_path / name).slices
        return Counter(
            (piece.track, piece.name, piece.start_ns, piece.end_ns, piece.source, frozenset(piece.flows))
            for piece in slices
            if "id" in piece.arguments or "kind" in piece.arguments
        )

    assert rows_of("parts.pftrace") == rows_of("whole.pftrace")


def test_processes_that_share_a_number_stay_apart(tmp_path):
    rows = pa.concat_tables([instructions([0], [1]), instructions([0], [1], process_idx=[1])])
    processes = table("ProcessInfo", process_idx=[0, 1], process_id=[77, 77], command=["a", "b"])
    trace, _ = exported({"Instruction": rows, "ProcessInfo": processes}, tmp_path)

    numbers = [d.process.pid for d in trace.descriptors.values() if d.HasField("process")]
    assert len(set(numbers)) == 2


def test_progress_ends_at_the_total(tmp_path):
    calls = []
    rows = instructions([0, 1], [1, 2])
    exported({"Instruction": rows}, tmp_path, progress=lambda *call: calls.append(call))

    assert calls[-1] == (2, 2)


def test_a_profile_without_rows_makes_a_trace_without_slices(tmp_path):
    trace, report = exported({"Instruction": instructions([], [])}, tmp_path)

    assert trace.slices == []
    assert report.counts["slices"] == 0


def test_an_existing_file_is_kept(tmp_path):
    path = tmp_path / "run.pftrace"
    path.write_text("mine")

    with pytest.raises(UsageError, match="exists"):
        export_perfetto(MemoryProfile({"Instruction": instructions([0], [1])}), path)

    assert path.read_text() == "mine"
