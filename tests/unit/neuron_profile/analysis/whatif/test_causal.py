"""Speeding up what the end waits for pays; speeding up what is hidden does not."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.whatif import causal
from neuron_profile.analysis.whatif.causal import find_causes
from neuron_tools.records.program import DType, Engine, Memory, Opcode
from tests.unit.neuron_profile.small_capture import FILE, Step, open_capture, program


def _work(builder, engine, count, hlo):
    for _ in range(count):
        builder.instruction(
            engine, Opcode.TENSOR_TENSOR, partitions=128, elements=512, input_dtype=DType.F32,
            output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.SBUF, hlo=hlo,
        )  # fmt: skip


def beside():
    """Line 4 on one engine for long, line 5 on another for a tenth of it at the same time."""

    def build(builder, hlo):
        _work(builder, Engine.VECTOR, 2000, hlo[0])
        _work(builder, Engine.SCALAR, 100, hlo[1])

    return program([("long", 4), ("short", 5)], build)


@pytest.fixture
def context(tmp_path):
    with open_capture(tmp_path, [beside()], [Step(0)] * 5) as profile:
        yield Context(profile)


def test_only_what_the_end_waits_for_pays(context):
    found = find_causes(context)
    assert [row.what for row in found.rows] == [f"{FILE}:4", f"{FILE}:5"]
    long, short = found.rows
    assert long.most == pytest.approx(0.5, abs=0.12)
    assert short.gains_ns == (0, 0, 0)
    assert long.gains_ns[0] < long.gains_ns[1] < long.gains_ns[2]


def test_a_gain_is_a_tenth_where_all_is_one_line(context):
    row = find_causes(context).rows[0]
    assert row.gains_ns[0] / find_causes(context).total_ns == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize(("level", "names"), [("operation", ["long", "short"]), ("module", ["/model"])])
def test_levels(context, level, names):
    assert [row.what for row in find_causes(context, level).rows] == names


def test_what_is_not_tried_is_counted(context, monkeypatch):
    assert find_causes(context, limit=1).left_out == 1
    monkeypatch.setattr(causal, "MOST_SIMULATED", 1)
    assert len(find_causes(context).rows) == 1
