import pyarrow as pa
import pytest

from neuron_explorer.grid_sources import SOURCES, groups
from neuron_explorer.operator_times import charged_costs, needs, with_charged_time
from neuron_profile.analysis.hotspots import find_hotspots
from neuron_tools import open_profile
from tests.unit.profile.builders import columns, level


@pytest.mark.parametrize("source", ["operation", "module", "line"])
def test_charged_times_add_up_to_what_belongs_to_operations(make_profile, source: str) -> None:
    with open_profile(make_profile()) as profile:
        hotspots = find_hotspots(profile)
        costs = charged_costs(hotspots, source)
        rows = with_charged_time(groups(profile, source), costs, hotspots.device_ns)
    belonging = {"operation": hotspots.unattributed_ns, "module": hotspots.unattributed_ns}
    missing = belonging.get(source, hotspots.without_line_ns)
    assert sum(rows["time_ns"].to_pylist()) == pytest.approx(hotspots.device_ns - missing)
    assert rows.column_names == [column.name for column in SOURCES[source].columns]


def test_a_group_that_only_one_side_knows_is_there() -> None:
    columns = [column.name for column in SOURCES["operation"].columns]
    work = pa.table({name: ["a"] if name == "name" else [1.0] for name in columns})
    from neuron_profile.analysis.hotspots import Cost

    rows = with_charged_time(work, {"b": Cost(30.0, 10.0, 4)}, 80.0).sort_by("name").to_pylist()
    assert [(row["name"], row["time_ns"], row["share"], row["calls"]) for row in rows] == [
        ("a", 0, None, 1),
        ("b", 40, 0.5, 4),
    ]


def test_overlapping_operations_count_once(make_profile, tiny_tables) -> None:
    tables = dict(tiny_tables)
    spans = ((0, 100, "add"), (50, 150, "add"), (0, 10, "dot"))
    rows = [
        level("HloInstruction", start_ns, end_ns, number, hlo_opcode=opcode)
        for number, (start_ns, end_ns, opcode) in enumerate(spans, start=1)
    ]
    tables["HloInstruction"] = columns(rows)
    with open_profile(make_profile(tables=tables)) as profile:
        times_ns = {row["name"]: row["time_ns"] for row in groups(profile, "hlo").to_pylist()}
    assert times_ns == {"add": 150, "dot": 10}


def test_only_charged_sources_wait_for_the_charges() -> None:
    assert needs("opcode") == [("grid-groups", "opcode")]
    assert len(needs("module")) == 2
