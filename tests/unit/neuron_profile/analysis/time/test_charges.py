import pytest

from neuron_profile.analysis.time import charges, chosen_rows, core_charges, repeats
from neuron_profile.analysis.time.charges import Charge, charge_device_time
from neuron_profile.analysis.time.numbering import Origin
from neuron_tools import open_profile
from tests.unit.neuron_profile.analysis.repeated_graph import repeated_graph


def test_charges_add_up_to_the_execution_spans(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        charges = charge_device_time(profile)
    assert charges.charges == (
        Charge(Origin("/model/a", "aten::addmm", False, "1"), 100, 1),
        Charge(Origin("/model/a", "aten::mul", False, "2"), 30, 1),
        Charge(Origin("/model/b", "aten::mul", True, "2"), 20, 1),
    )
    assert charges.unattributed_ns == 50
    assert charges.device_ns == 200


def test_a_profile_without_device_rows_has_no_charges(make_profile) -> None:
    with open_profile(make_profile(tables={})) as profile:
        charges = charge_device_time(profile)
    assert (charges.charges, charges.device_ns) == ((), 0)


def test_stacks_given_as_lists_use_the_innermost_frame(make_profile, tiny_tables) -> None:
    framework = {**tiny_tables["FrameworkInstruction"], "stack_frame_ids": ["1,7", "2,1", "2,1"]}
    with open_profile(make_profile(tables={**tiny_tables, "FrameworkInstruction": framework})) as profile:
        origins = [charge.origin.stack for charge in charge_device_time(profile).charges]
    assert origins == ["1", "2", "2"]


def test_processes_and_cores_do_not_share_time(make_profile, tiny_tables) -> None:
    """The same spans on another core are charged once more, not divided."""
    tables = dict(tiny_tables)
    for table, core, ids in (
        ("Instruction", "pcore_idx", ("id", "raw_framework_id")),
        ("FrameworkInstruction", "pcore_idx", ("id", "raw_framework_id")),
        ("SystemProfileEvents", "nc_idx", ("id",)),
    ):
        rows = tables[table]
        copy = {name: list(values) for name, values in rows.items()}
        copy[core] = [1] * len(copy["id"])
        for name in ids:
            copy[name] = [value + 100 for value in copy[name]]
        tables[table] = {name: [*rows[name], *copy[name]] for name in rows}
    with open_profile(make_profile(tables=tables)) as profile:
        charges = charge_device_time(profile)
    assert charges.device_ns == 400
    assert [(charge.device_ns, charge.count) for charge in charges.charges] == [(200, 2), (60, 2), (40, 2)]


@pytest.mark.parametrize(("rows", "compiled_from"), [(1, 1 << 20), (2, 0), (1 << 20, 0)])
def test_stretches_and_the_compiled_kernel_change_nothing(make_profile, monkeypatch, rows, compiled_from):
    monkeypatch.setattr(core_charges, "STRETCH_ROWS", rows)
    monkeypatch.setattr(core_charges, "COMPILED_FROM", compiled_from)
    with open_profile(make_profile()) as profile:
        charges = charge_device_time(profile)
    assert [charge.device_ns for charge in charges.charges] == [100, 30, 20]
    assert charges.unattributed_ns == 50


@pytest.mark.parametrize("most_between", [-1, 100_000], ids=["chosen ids", "all between"])
def test_a_transfer_belongs_to_what_started_it_also_before_the_range(
    make_profile, tiny_tables, monkeypatch, most_between
):
    """A transfer that names no operation is that of its trigger, wherever the range begins."""
    monkeypatch.setattr(chosen_rows, "MOST_BETWEEN", most_between)
    transfers = {**tiny_tables["DmaPacketAggregated"]}
    rows = len(transfers["start_ts"])
    transfers |= {
        "start_ts": [1900] * rows, "end_ts": [1950] * rows, "trigger": [11] * rows,
        "raw_framework_id": [None] * rows,
    }  # fmt: skip
    with open_profile(make_profile(tables={**tiny_tables, "DmaPacketAggregated": transfers})) as profile:
        part = charge_device_time(profile.slice(1890, 1960))
    assert part.engines["dma"] == 50
    assert [(charge.origin.operation, charge.device_ns) for charge in part.charges] == [("aten::addmm", 50)]


def with_shares(tiny_tables, parts):
    """The tiny profile, in which instruction 12 belongs to HLO operation 50 with these parts."""
    instructions = {**tiny_tables["Instruction"], "raw_hlo_id": [None, 50, None, None, None]}
    framework, shares = zip(*parts)
    table = {
        "raw_hlo_id": [50] * len(parts), "raw_framework_id": list(framework), "share": list(shares),
        "process_idx": [0] * len(parts), "pcore_idx": [0] * len(parts),
    }  # fmt: skip
    return {**tiny_tables, "Instruction": instructions, "FrameworkShare": table}


def test_a_fused_operation_is_charged_to_its_parts_by_their_shares(make_profile, tiny_tables) -> None:
    with open_profile(make_profile("whole.nprof", tiny_tables)) as profile:
        before = {charge.origin: charge.device_ns for charge in charge_device_time(profile).charges}
    with open_profile(make_profile(tables=with_shares(tiny_tables, [(1, 0.75), (3, 0.25)]))) as profile:
        charges = charge_device_time(profile)
    after = {charge.origin: charge.device_ns for charge in charges.charges}
    first, third = (Origin("/model/a", "aten::addmm", False, "1"), Origin("/model/b", "aten::mul", True, "2"))
    moved = after[third] - before[third]
    assert moved == pytest.approx(0.25 * 30)  # 20 ns alone and half of 20 ns beside instruction 13
    assert before[first] - after[first] == pytest.approx(moved)
    assert charges.device_ns == pytest.approx(200)


@pytest.mark.parametrize("most_held", [charges.MOST_HELD, -1], ids=["held", "in parts"])
@pytest.mark.parametrize(("kind", "stands_for_all"), [("graph", True), ("eager", False)])
def test_one_execution_of_a_graph_stands_for_all(
    make_profile, tiny_tables, monkeypatch, kind, stands_for_all, most_held
):
    path = make_profile(tables=repeated_graph(tiny_tables, kind))
    with open_profile(path) as profile:
        expected = charge_device_time(profile)
    monkeypatch.setattr(repeats, "REPEATED_FROM", 0)
    monkeypatch.setattr(charges, "MOST_HELD", most_held)
    with open_profile(path) as profile:
        assert (repeats.find_repeats(profile, (0, 0)) is not None) == stands_for_all
        assert charge_device_time(profile) == expected
    assert expected.device_ns == 300
