"""Operations against what the chip and each memory allow."""

from __future__ import annotations

import pytest

import neuron_tools
from neuron_profile.analysis.roofline import WHOLE, make_roofline
from neuron_tools import hardware

CORE = hardware.get("trn2")
SPAN_NS = 1000
# name, FLOPs, HBM, SBUF, PSUM bytes: each a tenth over half of what its limit allows in the span.
HALF = {
    "compute": (0.6 * CORE.peak_flops("bf16"), 0, 0, 0),
    "HBM": (1e12, 0.6 * CORE.hbm_bandwidth, 0, 0),
    "SBUF": (0, 0, 0.6 * hardware.sbuf_bandwidth(CORE), 0),
    "PSUM": (0, 0, 0, 0.6 * hardware.psum_bandwidth(CORE)),
}


def tables(calls=1):
    """An HLO operation per limit and call, one after the other; instructions with its PSUM bytes."""
    rows = [
        (name, call, *(int(value * SPAN_NS / 1e9) for value in numbers))
        for call in range(calls)
        for name, numbers in HALF.items()
    ]
    count = len(rows)
    names, _, flops, hbm, sbuf, psum = map(list, zip(*rows))
    ids = list(range(1, count + 1))
    zero, empty = [0] * count, [[]] * count
    start = [2 * SPAN_NS * number for number in range(count)]
    operations = {
        "id": ids, "raw_hlo_id": ids, "raw_framework_id": ids, "hlo_name": names, "framework_name": names,
        "layer": ["/model"] * count, "source_file": ["train.py"] * count, "source_line": [7] * count,
        "hlo_opcode": names, "start_ts": start, "end_ts": [at + SPAN_NS for at in start],
        "model_flops": flops,
        "hbm_read_bytes": hbm, "hbm_write_bytes": zero, "sbuf_read_bytes": zero, "sbuf_write_bytes": sbuf,
        "raw_bir_id": zero, "raw_penguin_id": zero, "time_intervals": ["[]"] * count, "process_idx": zero,
        **{
            f"{name}_per_interval": empty
            for name in ("element_count", "transpose_element_count", "hbm_transfer_size")
        },
    }  # fmt: skip
    instructions = {
        "id": ids, "raw_hlo_id": ids, "engine": ["Vector"] * count, "opcode": ["COPY"] * count,
        "start_ts": zero, "end_ts": zero, "duration_ns": zero, "operands": [""] * count, "pc": ids,
        "bir_id": [""] * count, "process_idx": zero, "psum_read_bytes": [size // 4 for size in psum],
        "psum_write_bytes": [size - size // 4 for size in psum],
    }  # fmt: skip
    own = (
        "id",
        "raw_framework_id",
        "framework_name",
        "layer",
        "source_file",
        "source_line",
        "start_ts",
        "end_ts",
    )
    framework = {
        **{name: operations[name] for name in (*own, "process_idx", "time_intervals")},
        **{name: values for name, values in operations.items() if name.endswith("_per_interval")},
        **{f"raw_{name}_id": zero for name in ("bir", "penguin", "hlo")}, "pcore_idx": zero,
        "hbm_read_bytes": zero, "hbm_write_bytes": zero, "stack_frame_ids": ["1"] * count,
    }  # fmt: skip
    return {
        "HloInstruction": operations, "Instruction": instructions, "FrameworkInstruction": framework,
        "StackFrame": {"id": ["1"], "file_location_id": [1], "parent_frame_id": [""]},
        "StackFrameFileLocation": {
            "id": ["1"], "file_name_id": [1], "function_name_id": [1], "line_number": [7]
        },
        "StackFrameFileName": {"id": ["1"], "name": ["train.py"]},
    }  # fmt: skip


def test_the_bound_is_the_memory_or_engine_that_needs_longest(make_profile):
    with neuron_tools.open_profile(make_profile(tables=tables())) as profile:
        points = {point.name: point for point in make_roofline(profile).points}
    assert {name: point.bound for name, point in points.items()} == {name: name for name in HALF}
    assert [point.of_bound for point in points.values()] == pytest.approx([0.6] * 4, rel=1e-6)
    assert points["PSUM"].psum_bytes == int(HALF["PSUM"][3] * SPAN_NS / 1e9)
    assert points["HBM"].intensity == 1_000_000 / points["HBM"].hbm_bytes


@pytest.mark.parametrize(("level", "points_of_it"), [("operation", 4), ("module", 1), ("line", 1)])
def test_work_is_summed_and_time_is_that_charged_at_every_level(make_profile, level, points_of_it):
    with neuron_tools.open_profile(make_profile(tables=tables(calls=3))) as profile:
        points = make_roofline(profile, level).points
    once = {field: sum(int(numbers[place] * SPAN_NS / 1e9) for numbers in HALF.values())
            for place, field in enumerate(("flops", "hbm_bytes", "sbuf_bytes", "psum_bytes"))}  # fmt: skip
    assert {field: sum(getattr(point, field) for point in points) for field in once} == {
        field: 3 * value for field, value in once.items()
    }
    assert [point.charged_ns for point in points] == [12 * SPAN_NS / points_of_it] * points_of_it


def test_a_product_in_fp32_is_held_against_the_rate_of_fp32(make_profile):
    """Four passes of the Tensor engine, half of the time: compute-bound at half, not HBM-bound at little."""
    given = tables()
    passes = int(0.5 * CORE.peak_flops("bf16") * SPAN_NS / 1e9)
    flops = [passes // 4, 0, 0, 0]
    given["HloInstruction"] |= {
        "model_flops": flops,
        "hbm_read_bytes": [int(0.2 * CORE.hbm_bandwidth / 1e6)] * 4,
    }
    given["Instruction"] |= {"raw_flops": flops, "adjusted_flops": [4 * flops[0], 0, 0, 0]}
    with neuron_tools.open_profile(make_profile(tables=given)) as profile:
        point = next(point for point in make_roofline(profile).points if point.name == "compute")
    assert (point.bound, point.of_bound) == ("compute", pytest.approx(0.5, rel=1e-4))


def test_a_throttled_tensor_engine_has_a_lower_roof(make_profile):
    with neuron_tools.open_profile(make_profile(tables=tables())) as profile:
        roofline = make_roofline(profile)
    assert roofline.peak_flops["bf16"] == CORE.peak_flops("bf16")
    assert (
        roofline.throttled_flops["bf16"] == CORE.peak_flops("bf16") * CORE.throttle_idle / CORE.throttle_steps
    )
    assert (roofline.sbuf_bytes_per_second, roofline.psum_bytes_per_second) == (
        hardware.sbuf_bandwidth(CORE), hardware.psum_bandwidth(CORE),
    )  # fmt: skip


def test_without_operations_the_summary_is_one_point(make_profile):
    summary = {
        "total_time": [1e-6], "hbm_read_bytes": [100], "hbm_write_bytes": [20], "psum_read_bytes": [3],
        "psum_write_bytes": [4], "hardware_flops": [10], "transpose_flops": [4],
    }  # fmt: skip
    with neuron_tools.open_profile(make_profile(tables={"Summary": summary})) as profile:
        (point,) = make_roofline(profile).points
    assert (point.name, point.flops, point.hbm_bytes, point.psum_bytes) == (WHOLE, 6, 120, 7)
