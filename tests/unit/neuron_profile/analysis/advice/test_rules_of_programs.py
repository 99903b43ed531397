"""Rules that look at what a program moves and computes: each fires at its line, and is silent beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from neuron_profile.analysis.advice.advise import RULES
from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.rules import recompilation
from neuron_profile.analysis.compilation import Compilation
from neuron_tools.profile.reader import Profile
from neuron_tools.records.program import (
    DType,
    Engine,
    Flag,
    Memory,
    Opcode,
    Purpose,
    QueueKind,
    TensorKind,
)
from tests.unit.neuron_profile.small_capture import FILE, Step, elementwise, open_capture, products, program

TENSOR_BYTES = 1 << 18


def transfers(tensors: int, purpose: Purpose = Purpose.WEIGHT):
    """Twelve loads of whole tensors in turn."""

    def build(builder, hlo):
        queue = builder.queue("qSyncInput0", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
        rows = [builder.tensor(f"w{n}", TensorKind.WEIGHT, DType.F32, (128, 512)) for n in range(tensors)]
        for number in range(12):
            builder.dma(
                queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=TENSOR_BYTES,
                descriptor_bytes=2048, partitions=128, tensor=rows[number % tensors], hlo=hlo[0],
                purpose=purpose,
            )  # fmt: skip

    return build


def layers_and_a_mask(builder, hlo):
    """Biases of six layers, of which each is loaded three times, and a mask that is loaded seven times."""
    queue = builder.queue("qSyncInput0", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
    names = {f"layers.{number}.bias": 3 for number in range(6)} | {"mask": 7}
    for name, times in names.items():
        row = builder.tensor(name, TensorKind.WEIGHT, DType.F32, (128, 512))
        for _ in range(times):
            builder.dma(
                queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=TENSOR_BYTES,
                descriptor_bytes=2048, partitions=128, tensor=row, hlo=hlo[0], purpose=Purpose.WEIGHT,
            )  # fmt: skip


def flagged(flag: Flag, opcode: Opcode = Opcode.TENSOR_COPY, engine: Engine = Engine.VECTOR):
    """Instructions with a flag."""

    def build(builder, hlo):
        for _ in range(50):
            builder.instruction(
                engine, opcode, partitions=128, columns=128, elements=512, input_dtype=DType.BF16,
                output_dtype=DType.BF16, source_memory=Memory.SBUF, destination_memory=Memory.SBUF,
                hlo=hlo[0], flags=flag,
            )  # fmt: skip

    return build


AGAIN, ONCE = program([("load", 4)], transfers(3)), program([("load", 4)], transfers(12))
SPILLED = program([("spill", 5)], transfers(12, Purpose.SPILL_RELOAD))
HOST_CALL = program([("custom_call", 6)], flagged(Flag.ESTIMATE))
KERNEL = program([("custom_call", 6)], flagged(Flag.NONE))
SHORT = program([("matmul", 7)], products(30))
NO_MATMUL = program([("add", 7)], elementwise(100))
CASES = {
    "repeated_loads": (AGAIN, ONCE, 4),
    "spill": (SPILLED, ONCE, 5),
    "custom_calls": (HOST_CALL, KERNEL, 6),
}


def findings(name, folder, each, steps=10):
    with open_capture(folder, [each], [Step(0)] * steps) as profile:
        return list(RULES.load(name)(Context(profile)))


@pytest.mark.parametrize("name", CASES)
def test_it_fires_at_its_line(name, tmp_path):
    faulty, _, line = CASES[name]
    (finding,) = findings(name, tmp_path, faulty)
    assert (finding.place.file, finding.place.line) == (FILE, line)
    assert finding.gain_ns > 0
    assert finding.evidence


def test_repeated_loads_are_named_after_the_tensor_of_all_layers_with_most_bytes(tmp_path):
    (finding,) = findings("repeated_loads", tmp_path, program([("load", 4)], layers_and_a_mask))
    assert finding.evidence["tensor"] == "layers.*.bias"
    assert finding.evidence["repeats"] == 3.0


@pytest.mark.parametrize("name", CASES)
def test_it_is_silent_without_its_fault(name, tmp_path):
    assert findings(name, tmp_path, CASES[name][1]) == []


def test_short_matrix_work_is_throttled(tmp_path):
    (finding,) = findings("throttling", tmp_path, SHORT)
    assert finding.device_gain_ns > 0


def test_other_work_is_not_throttled(tmp_path):
    assert findings("throttling", tmp_path, NO_MATMUL) == []


@pytest.mark.parametrize(("share", "found"), [(0.3, 1), (0.05, 0)])
def test_transposes_count_from_a_tenth_of_the_matrix_work(tmp_path, monkeypatch, share, found):
    monkeypatch.setattr(
        Profile, "summary", lambda self: {"hardware_flops": 1e9, "transpose_flops": share * 1e9}
    )
    turned = program([("transpose", 8)], flagged(Flag.TRANSPOSE, Opcode.TRANSPOSE, Engine.TENSOR))
    results = findings("transposes", tmp_path, turned)
    assert [finding.place.line for finding in results] == [8] * found


def compilations(count: int, spread_ns: int) -> tuple[Compilation, ...]:
    """One function, compiled again and again; each takes a millisecond."""
    return tuple(
        Compilation(
            0, number + 1, f"step_{number}_forward", "step_forward", 1_000_000, False, spread_ns * number
        )
        for number in range(count)
    )


@pytest.mark.parametrize(
    ("count", "spread_ns", "found"),
    [(5, 10**9, 1), (2, 10**9, 0), (5, 0, 0)],
    ids=["always", "twice", "warm-up"],
)
def test_a_function_that_is_always_compiled(tmp_path, monkeypatch, count, spread_ns, found):
    monkeypatch.setattr(recompilation, "find_compilations", lambda profile: compilations(count, spread_ns))
    results = findings("recompilation", tmp_path, NO_MATMUL)
    assert [finding.gain_ns for finding in results] == [4_000_000] * found


def test_a_backward_pass_is_compiled_again_because_the_forward_pass_is(tmp_path, monkeypatch):
    forward = compilations(5, 10**9)
    backward = tuple(
        replace(
            graph,
            number=graph.number + 5,
            name=f"{graph.name}_",
            function="step_backward",
            compile_ns=3_000_000,
        )
        for graph in forward
    )
    monkeypatch.setattr(recompilation, "find_compilations", lambda profile: backward + forward)
    (finding,) = findings("recompilation", tmp_path, NO_MATMUL)
    assert finding.title.startswith("step_forward is compiled 5 times")
    assert finding.gain_ns == 16_000_000
    assert finding.evidence["operations"] == ["step_backward"]


def test_modules_of_programs_are_named_as_in_the_tables(tmp_path) -> None:
    """With slashes, as the `layer` of eager operations: a click on a finding chooses its module."""
    with open_capture(tmp_path, [SHORT], [Step(0)] * 2) as profile:
        assert {place.module for place in Context(profile).busy_places()} == {"/model"}
