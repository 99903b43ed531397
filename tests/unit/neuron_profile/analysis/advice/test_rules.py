"""Each rule fires where it should and is silent where it should be."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import neuron_tools
from neuron_profile.analysis.advice.advise import RULES, advise
from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.rules import unoverlapped_collectives
from neuron_profile.analysis.advice.rules.host_synchronisation import waiting_places
from neuron_profile.analysis.communication import Communication
from neuron_profile.analysis.whatif.change import parse_change
from neuron_tools.profile.writer import ProfileWriter
from neuron_tools.records.program import (
    Collective,
    CollectiveKind,
    DType,
    Engine,
    Memory,
    Opcode,
    QueueKind,
)
from tests.unit.neuron_profile.small_capture import (
    FILE,
    METADATA,
    Step,
    elementwise,
    loads,
    open_capture,
    products,
    products_taken_out,
    program,
)

GOOD = program([("matmul", 4)], products(400))
FP32 = program([("matmul", 5)], products(400, DType.F32))
SMALL_PIECES = program([("gather", 6)], loads(8, 64))
LARGE_PIECES = program([("load", 6)], loads(8, 4096))
IN_TURN = program([("load", 7)], loads(16, 4096, after_each=True))
NARROW = program([("add", 8)], elementwise(200, partitions=8))
ONE_ENGINE = program([("add", 9)], elementwise(200))
EVACUATED = program([("matmul", 11)], products_taken_out(200, elements=2048))
PROMPT = program([("matmul", 11)], products_taken_out(200, elements=8, banks=8))
TINY = program([("add", 10)], elementwise(1))


def findings(name, tmp_path, programs, steps):
    with open_capture(tmp_path, programs, steps) as profile:
        return list(RULES.load(name)(Context(profile)))


CASES = {
    "fp32_matmul": (FP32, GOOD, 5),
    "small_dma": (SMALL_PIECES, LARGE_PIECES, 6),
    "dma_not_overlapped": (IN_TURN, GOOD, 7),
    "underfilled_tiles": (NARROW, ONE_ENGINE, 8),
    "engine_imbalance": (ONE_ENGINE, GOOD, 9),
    "psum_evacuation": (EVACUATED, PROMPT, 11),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_fires_at_its_line_with_a_gain(name, tmp_path):
    faulty, _, line = CASES[name]
    (finding,) = findings(name, tmp_path, [faulty], [Step(0)] * 20)
    assert (finding.place.file, finding.place.line) == (FILE, line)
    assert finding.gain_ns > 0
    assert 0 < finding.gain <= 1
    if finding.what_if:
        assert parse_change(finding.what_if).text == finding.what_if


@pytest.mark.parametrize("name", CASES)
def test_a_rule_is_silent_without_its_fault(name, tmp_path):
    _, sound, _ = CASES[name]
    assert findings(name, tmp_path, [sound], [Step(0)] * 20) == []


def test_waiting_in_the_loop_is_found_at_its_line(tmp_path):
    (finding,) = findings("host_synchronisation", tmp_path, [GOOD], [Step(0, wait_line=12)] * 50)
    assert finding.place.line == 12
    assert finding.gain_ns > 0
    assert finding.evidence["waits"] == 50


def test_copies_to_the_device_are_no_waits(tmp_path):
    assert findings("host_synchronisation", tmp_path, [GOOD], [Step(0, write_ns=1_000)] * 50) == []


def test_what_is_read_behind_the_last_execution_keeps_nothing_waiting(tmp_path):
    with ProfileWriter(tmp_path / "run.nprof", METADATA) as writer:
        writer.append(
            "SystemProfileEvents",
            {
                "name": ["nc_exec_running"], "start_ts": [0], "end_ts": [100], "duration_ns": [100],
                "id": [0], "process_idx": [0], "process_id": [1], "thread_id": [0], "instance_id": ["x"],
                "trace_event_source": ["neuron_hw"],
            },
        )  # fmt: skip
        begins = [10, 30, 50, 200, 220, 240]
        writer.append(
            "HostSpan",
            {
                "kind": ["copy"] * 6, "name": ["aten::copy_"] * 6, "source_file": [FILE] * 6,
                "start_ts": begins, "end_ts": [begin + 5 for begin in begins], "duration_ns": [5] * 6,
                "source_line": [3, 3, 3, 9, 9, 9], "process_idx": [0] * 6, "thread_idx": [0] * 6,
            },
        )  # fmt: skip
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        assert waiting_places(profile) == {f"{FILE}:3"}


def test_one_wait_at_the_end_is_no_fault(tmp_path):
    assert findings("host_synchronisation", tmp_path, [GOOD], [Step(0), Step(0), Step(0, wait_line=12)]) == []


def test_many_tiny_executions_are_found(tmp_path):
    (finding,) = findings("tiny_operations", tmp_path, [TINY] * 3, [Step(0), Step(1), Step(2)] * 50)
    assert finding.evidence["executions"] == 150
    assert finding.gain_ns > 0.5 * finding.total_ns, "two launches of three go"


def test_one_tiny_execution_in_each_step_is_no_fault(tmp_path):
    assert findings("tiny_operations", tmp_path, [TINY], [Step(0)] * 150) == []


def test_few_tiny_executions_are_not(tmp_path):
    assert findings("tiny_operations", tmp_path, [TINY], [Step(0)] * 20) == []


def test_a_device_that_waits_for_the_host_is_found(tmp_path):
    (finding,) = findings("host_bound", tmp_path, [TINY], [Step(0, wait_line=3)] * 20)
    assert finding.gain_ns > 0


def test_a_busy_device_is_not_host_bound(tmp_path):
    assert findings("host_bound", tmp_path, [FP32], [Step(0)] * 20) == []


def test_a_device_that_only_launches_graphs_worth_launching_does_not_wait_for_the_host(tmp_path):
    longer = program([("add", 10)], elementwise(40))
    with open_capture(tmp_path, [longer], [Step(0)] * 20) as profile:
        assert Context(profile).occupancy.busy_share < 0.9
        assert list(RULES.load("host_bound")(Context(profile))) == []


@pytest.mark.parametrize("name", RULES.names())
def test_every_rule_takes_a_profile_with_nothing_in_it(name, tmp_path):
    ProfileWriter(tmp_path / "empty.nprof", METADATA).close(True)
    with neuron_tools.open_profile(tmp_path / "empty.nprof") as profile:
        assert list(RULES.load(name)(Context(profile))) == []


def test_findings_come_by_falling_gain(tmp_path):
    with open_capture(tmp_path, [FP32, SMALL_PIECES], [Step(0), Step(1)] * 10) as profile:
        found = advise(profile)
    gains = [finding.gain_ns or 0 for finding in found]
    assert gains == sorted(gains, reverse=True)
    assert {"fp32_matmul", "small_dma"} <= {finding.rule for finding in found}


@pytest.mark.parametrize(
    ("gain_ns", "device_gain_ns", "is_told"),
    [(None, None, True), (0, 0, False), (1, 0, False), (9000, 0, True), (0, 9000, True), (-50, None, False)],
)
def test_what_gains_nothing_is_not_told(gain_ns, device_gain_ns, is_told, tmp_path, monkeypatch):
    finding = Finding("spill", "", "", gain_ns=gain_ns, device_gain_ns=device_gain_ns, total_ns=1_000_000)
    rules = SimpleNamespace(load_all=lambda: [("spill", lambda context: [finding])])
    monkeypatch.setattr("neuron_profile.analysis.advice.advise.RULES", rules)
    with open_capture(tmp_path, [GOOD], [Step(0)] * 2) as profile:
        assert bool(advise(profile)) is is_told


def test_sums_that_the_compiler_keeps_in_fp32_are_no_products(tmp_path):
    sums = program([("sum", 5)], products(400, DType.F32))
    assert findings("fp32_matmul", tmp_path, [sums], [Step(0)] * 5) == []


def test_what_makes_parameters_before_the_first_product_gains_nothing_by_bf16(tmp_path):
    steps = [Step(1)] * 20
    (alone,) = findings("fp32_matmul", tmp_path / "alone", [ONE_ENGINE, FP32], steps)
    (after,) = findings("fp32_matmul", tmp_path / "after", [ONE_ENGINE, FP32], [Step(0), Step(0), *steps])
    assert after.device_gain_ns == alone.device_gain_ns > 0


def test_what_comes_before_the_device_is_used_changes_no_order(tmp_path):
    short = program([("matmul", 5)], products(6, DType.F32))
    for start_ns in (0, 10_000_000_000):
        folder = tmp_path / str(start_ns)
        with open_capture(folder, [short], [Step(0, wait_line=3)] * 20, start_ns) as profile:
            found = [finding.rule for finding in advise(profile)]
        assert found[0] == "fp32_matmul"
        assert "host_bound" in found


def test_gpsimd_work_could_move_to_an_idle_vector_engine(tmp_path):
    slow = program([("add", 9)], elementwise(200, engine=Engine.GPSIMD))
    (finding,) = findings("engine_imbalance", tmp_path, [slow], [Step(0)] * 5)
    assert "GpSimd is busy" in finding.title
    assert finding.evidence["moved_share"] == pytest.approx(len(finding.evidence["turns"]) / 8, abs=0.01)


def reductions(builder, hlo):
    """Work that only the Vector engine can do."""
    for _ in range(200):
        builder.instruction(
            Engine.VECTOR, Opcode.TENSOR_REDUCE, partitions=128, elements=512, input_dtype=DType.F32,
            output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.SBUF, hlo=hlo[0],
        )  # fmt: skip


def test_reductions_move_to_no_other_engine(tmp_path):
    busy = program([("amax", 9)], reductions)
    assert findings("engine_imbalance", tmp_path, [busy], [Step(0)] * 5) == []


@pytest.mark.parametrize("name", ["underfilled_tiles", "engine_imbalance", "dma_not_overlapped"])
def test_outside_of_kernels_the_compiler_decides_about_tiles_and_engines(name, tmp_path):
    with open_capture(tmp_path, [CASES[name][0]], [Step(0)] * 20) as profile:
        (found,) = (finding for finding in advise(profile) if finding.rule == name)
    assert not found.within_reach


def all_reduce_alone():
    """A program that only exchanges 16 MiB, and its CcOp row."""

    def build(builder, hlo):
        queue = builder.queue("qSyncCollective", Engine.SYNC, QueueKind.COLLECTIVE)
        group = tuple(range(8))
        builder.collective(
            queue, Collective(CollectiveKind.ALL_REDUCE, 1 << 24, group, DType.BF16), hlo=hlo[0]
        )

    return program([("all_reduce", 11)], build)


def test_collectives_that_nothing_hides_are_found(tmp_path, monkeypatch):
    exposed = Communication((), busy_ns=10_000_000, hidden_ns=0)
    monkeypatch.setattr(unoverlapped_collectives, "measure_communication", lambda profile: exposed)
    (finding,) = findings("unoverlapped_collectives", tmp_path, [all_reduce_alone()], [Step(0)] * 3)
    assert finding.place.line == 11
    assert finding.device_gain_ns > 0


def test_hidden_collectives_are_not(tmp_path, monkeypatch):
    hidden = Communication((), busy_ns=10_000_000, hidden_ns=10_000_000)
    monkeypatch.setattr(unoverlapped_collectives, "measure_communication", lambda profile: hidden)
    assert findings("unoverlapped_collectives", tmp_path, [all_reduce_alone()], [Step(0)] * 3) == []


@pytest.mark.parametrize(("executions_of_second", "found"), [(2, 1), (20, 0)])
def test_cores_that_do_little_are_found(tmp_path, executions_of_second, found):
    steps = [Step(0)] * 20 + [Step(0, core=1)] * executions_of_second
    results = findings("idle_cores", tmp_path, [FP32], steps)
    assert len(results) == found
    for finding in results:
        assert finding.evidence["idle_cores"] == 1
        assert 0 < finding.gain <= 0.5
