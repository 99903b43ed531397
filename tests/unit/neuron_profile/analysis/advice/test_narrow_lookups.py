"""Look-ups of short rows are found, and gain what looking up the same bytes in rows of 512 gives."""

import pytest

from neuron_profile.analysis.advice.advise import RULES
from neuron_profile.analysis.advice.context import Context
from neuron_tools.records.program import Engine, Memory, QueueKind
from tests.unit.neuron_profile.small_capture import FILE, Step, open_capture, program

ROWS = 1 << 13


def looked_up(row_bytes, rows=ROWS):
    """Rows from HBM by 128 to as many partitions, and from there to the result."""

    def build(builder, hlo):
        gather = builder.queue("qGpSimdDynamic", Engine.GPSIMD, QueueKind.SOFTWARE_DYNAMIC)
        store = builder.queue("qSyncStore0", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
        sides = {"bytes": 128 * row_bytes, "descriptor_bytes": row_bytes, "partitions": 128, "hlo": hlo[0]}
        for _ in range(rows // 128):
            taken = builder.dma(gather, source_memory=Memory.HBM, destination_memory=Memory.SBUF, **sides)
            builder.dma(
                store, source_memory=Memory.SBUF, destination_memory=Memory.HBM, after=[taken], **sides
            )

    return program([("embedding", 7)], build)


def found(name, folder, each):
    with open_capture(folder, [each], [Step(0)] * 10) as profile:
        return list(RULES.load(name)(Context(profile)))


@pytest.mark.parametrize("row_bytes", [32, 128, 256])
def test_the_gain_is_that_of_as_many_fewer_rows(row_bytes, tmp_path):
    (finding,) = found("narrow_lookups", tmp_path, looked_up(row_bytes))
    with open_capture(tmp_path / "wide", [looked_up(512, ROWS * row_bytes // 512)], [Step(0)] * 10) as wide:
        wide_ns = Context(wide).device_ns
    assert (finding.place.file, finding.place.line) == (FILE, 7)
    with open_capture(tmp_path / "narrow", [looked_up(row_bytes)], [Step(0)] * 10) as narrow:
        assert finding.device_gain_ns == pytest.approx(Context(narrow).device_ns - wide_ns, rel=0.03)


def test_rows_of_512_bytes_are_no_fault(tmp_path):
    assert found("narrow_lookups", tmp_path, looked_up(512)) == []


def test_look_ups_are_told_once(tmp_path):
    assert found("small_dma", tmp_path, looked_up(32)) == []
