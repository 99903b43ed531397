"""Random profiles and ranges: whoever tells a time tells the same one, to the nanosecond."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_explorer.api.source_costs import read_source_costs
from neuron_explorer.operator_times import charged_costs
from neuron_explorer.timeline.range_statistics import range_names
from neuron_profile.analysis.hotspots import find_hotspots
from neuron_profile.analysis.occupancy import measure_occupancy
from neuron_profile.analysis.overview import make_overview
from neuron_profile.analysis.roofline import make_roofline
from neuron_profile.analysis.time import charges, chosen_rows, core_charges, core_window, numbering
from neuron_profile.analysis.time.charges import charge_device_time, index_charges
from neuron_profile.analysis.time.stack_charges import charge_stacks
from neuron_tools import open_profile

OPERATIONS = 24
NANOSECOND = 1e-3  # of sums of float64


def random_tables(tiny_tables, seed):
    """Executions with several operations each, some fused, whose spans overlap; instructions on four
    engines."""
    random = np.random.default_rng(seed)
    places = np.arange(OPERATIONS)
    execution = places // 3
    begin = 1000 * execution
    start = begin + random.integers(0, 400, OPERATIONS)
    end = np.minimum(start + random.integers(1, 600, OPERATIONS), begin + 900)
    ids, zero = (places + 1).tolist(), [0] * OPERATIONS
    names = [f"aten::op{code}" for code in random.integers(0, 5, OPERATIONS)]
    modules = [f"/model/{code}" for code in random.integers(0, 3, OPERATIONS)]
    stacks = [str(code) for code in random.integers(1, 3, OPERATIONS)]
    common = {
        "id": ids, "start_ts": start.tolist(), "end_ts": end.tolist(), "process_idx": zero, "pcore_idx": zero,
        "framework_name": names, "layer": modules, "time_intervals": ["[]"] * OPERATIONS,
        "raw_bir_id": zero, "raw_penguin_id": zero, "raw_framework_id": ids, "raw_hlo_id": ids,
        "hbm_read_bytes": [4096] * OPERATIONS, "hbm_write_bytes": zero,
        "source_file": ["train.py"] * OPERATIONS,
        **{
            f"{name}_per_interval": [[]] * OPERATIONS
            for name in ("element_count", "transpose_element_count", "hbm_transfer_size")
        },
    }  # fmt: skip
    source_lines = [int(stack) + 1 for stack in stacks]
    rows = 200
    owner = random.integers(0, OPERATIONS, rows)
    first = start[owner] + random.integers(0, 50, rows)
    last = np.minimum(first + random.integers(0, 40, rows), end[owner])
    first = np.minimum(first, last)
    instructions = {
        "id": list(range(1000, 1000 + rows)), "start_ts": first.tolist(), "end_ts": last.tolist(),
        "duration_ns": (last - first).tolist(), "raw_framework_id": (owner + 1).tolist(),
        "raw_hlo_id": (owner + 1).tolist(), "pcore_idx": [0] * rows, "process_idx": [0] * rows,
        "engine": random.choice(["Tensor", "Vector", "Scalar", "GpSimd"], rows).tolist(),
        "opcode": random.choice(["MATMUL", "ADD", "DRAIN"], rows).tolist(), "operands": [""] * rows,
        "pc": [0] * rows, "bir_id": [""] * rows,
    }  # fmt: skip
    transfers = _transfers(tiny_tables, random, rows)
    fused = random.choice(OPERATIONS - 1, 6, replace=False)
    shares = {
        "raw_hlo_id": [int(place) + 1 for place in fused for _ in range(2)],
        "raw_framework_id": [int(place) + 1 + more for place in fused for more in (0, 1)],
        "share": [part for value in random.uniform(0.1, 0.9, 6) for part in (value, 1 - value)],
        "process_idx": [0] * 12, "pcore_idx": [0] * 12,
    }  # fmt: skip
    events = tiny_tables["SystemProfileEvents"]
    count = OPERATIONS // 3
    executions = {name: [values[0]] * count for name, values in events.items()}
    executions |= {
        "id": list(range(1, count + 1)), "start_ts": [1000 * number for number in range(count)],
        "end_ts": [1000 * number + 900 for number in range(count)], "duration_ns": [900] * count,
    }  # fmt: skip
    kept = (
        "StackFrame",
        "StackFrameFileLocation",
        "StackFrameFileName",
        "StackFrameFunctionName",
        "SourceFile",
    )
    return {
        "FrameworkInstruction": {**common, "stack_frame_ids": stacks, "source_line": source_lines},
        "HloInstruction": {
            **common, "source_line": source_lines, "hlo_name": [f"hlo.{number}" for number in ids],
            "hlo_opcode": random.choice(["dot", "add"], OPERATIONS).tolist(), "model_flops": zero,
        },
        "Instruction": instructions, "DmaPacketAggregated": transfers, "FrameworkShare": shares,
        "SystemProfileEvents": executions,
        **{name: tiny_tables[name] for name in kept},
        "Summary": tiny_tables["Summary"],
    }  # fmt: skip


def _transfers(tiny_tables, random, instructions):
    """Transfers within executions, started by whichever instruction; half of them name no operation."""
    rows = 80
    start = 1000 * random.integers(0, OPERATIONS // 3, rows) + random.integers(0, 800, rows)
    length = random.integers(1, 100, rows)
    repeated = {name: values * rows for name, values in tiny_tables["DmaPacketAggregated"].items()}
    return repeated | {
        "id": list(range(5000, 5000 + rows)), "start_ts": start.tolist(), "end_ts": (start + length).tolist(),
        "duration_ns": length.tolist(), "trigger": random.integers(1000, 1000 + instructions, rows).tolist(),
        "raw_framework_id": [None, 3] * (rows // 2),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_all_agree_over_any_range(make_profile, tiny_tables, seed):
    cut = sorted(np.random.default_rng(seed).integers(1, 7800, 2).tolist())
    with open_profile(make_profile(tables=random_tables(tiny_tables, seed))) as whole:
        parts = [whole.slice(low, high) for low, high in zip([0, *cut], [*cut, 7900]) if low < high]
        for profile in (whole, *parts):
            assert_agreement(profile)
        sums = [charge_device_time(part).device_ns for part in parts]
        assert sum(sums) == pytest.approx(charge_device_time(whole).device_ns, abs=NANOSECOND)


@pytest.mark.parametrize("most_held", [core_window.MOST_SPANS, -1])
@pytest.mark.parametrize("seed", range(3))
def test_sums_of_an_index_are_those_of_the_range_itself(
    make_profile, tiny_tables, monkeypatch, seed, most_held
):
    """Ranges of any length, from edges of the index or between them, of spans held or not."""
    monkeypatch.setattr(core_charges, "INDEXED_ROWS", 9)
    ranges = np.sort(np.random.default_rng(seed).integers(-50, 8000, (12, 2))).tolist()
    path = make_profile(tables=random_tables(tiny_tables, seed))
    with open_profile(path) as direct, open_profile(path) as indexed:
        index_charges(indexed)
        edges = indexed.known(("charge index", (0, 0), "hlo_opcode")).edges
        assert len(edges) > 15
        for low, high in [*ranges, (int(edges[2]), int(edges[9])), (int(edges[4]), int(edges[5]))]:
            if low < high:
                monkeypatch.setattr(core_window, "MOST_SPANS", -1)
                expected = charge_device_time(direct.slice(low, high))
                monkeypatch.setattr(core_window, "MOST_SPANS", most_held)
                found = charge_device_time(indexed.slice(low, high))
                assert times_of(found) == pytest.approx(times_of(expected), abs=NANOSECOND, rel=0)
                assert counts_of(found) == counts_of(expected)


@pytest.mark.parametrize(("seed", "most_between"), [(0, 100_000), (1, -10_000), (2, -10_000)])
def test_parts_of_a_profile_with_many_operations_are_charged_as_if_it_were_held(
    make_profile, tiny_tables, monkeypatch, seed, most_between
):
    """Whole and in ranges, whose edges and whose parts' edges cut executions; no part is large."""
    cuts = np.sort(np.random.default_rng(seed).integers(-50, 8000, (6, 2))).tolist()
    path = make_profile(tables=random_tables(tiny_tables, seed))
    sizes = []
    of_spans = numbering.Numbering.of_spans

    def counting(profile, tiers, column):
        sizes.append(len(tiers[0]))
        return of_spans(profile, tiers, column)

    with open_profile(path) as held, open_profile(path) as parted:
        for low, high in [(None, None), *[cut for cut in cuts if cut[0] < cut[1]]]:
            views = [each if low is None else each.slice(low, high) for each in (held, parted)]
            expected = charge_device_time(views[0])
            with monkeypatch.context() as context:
                context.setattr(charges, "MOST_HELD", -1)
                context.setattr(core_charges, "STRETCH_ROWS", 20)
                context.setattr(chosen_rows, "MOST_BETWEEN", most_between)
                context.setattr(numbering.Numbering, "of_spans", counting)
                found = charge_device_time(views[1])
            assert times_of(found) == pytest.approx(times_of(expected), abs=NANOSECOND, rel=0)
            assert counts_of(found) == counts_of(expected)
    assert len(sizes) > 15
    assert max(sizes) < 60


def times_of(found):
    by_origin = {f"{charge.origin}": charge.device_ns for charge in found.charges}
    return {**by_origin, **found.hlo, **found.engines, "none": found.unattributed_ns}


def counts_of(found):
    return {charge.origin: charge.count for charge in found.charges}


def assert_agreement(profile):
    """Whoever sums up charged time has all of it, and the same of each name."""
    charges, hotspots = charge_device_time(profile), find_hotspots(profile)
    near = {"abs": NANOSECOND, "rel": 0}
    device_ns = measure_occupancy(profile).device_ns
    for total in (
        charges.device_ns,
        sum(charges.hlo.values()),
        sum(charges.engines.values()),
        sum(charge_stacks(profile).values()),
        make_overview(profile).hotspots.device_ns,
        read_source_costs(profile).device_ns,
        hotspots.modules.cost.device_ns + hotspots.unattributed_ns,
        sum(row.cost.device_ns for row in hotspots.operations) + hotspots.unattributed_ns,
        sum(row.cost.device_ns for row in hotspots.lines) + hotspots.without_line_ns,
    ):
        assert total == pytest.approx(device_ns, **near)
    operations = {row.name: row.cost.device_ns for row in hotspots.operations}
    lines = charged_costs(hotspots, "line")
    of_files = read_source_costs(profile).files
    for file, costs in of_files.items():
        for line, work in costs.own.items():
            charged = lines.get(f"{file}:{line}")
            assert work.device_ns == pytest.approx(charged.device_ns if charged else 0, **near)
    for level, expected in (("operation", operations), ("hlo", charges.hlo)):
        for point in make_roofline(profile, level).points:
            assert point.charged_ns == pytest.approx(expected[point.name], **near)
    low, high = profile.range_ns or profile.time_range_ns()
    for track in profile.tracks():
        if track.level == "framework":
            named = range_names(profile, track, low, high)
            for row in named["names"] if named["is_charged"] else ():
                expected_ns = operations.get(row["name"], hotspots.unattributed_ns)
                assert row["time_ns"] == pytest.approx(expected_ns, **near)
