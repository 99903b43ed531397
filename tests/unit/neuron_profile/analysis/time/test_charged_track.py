"""The operations that a track is charged with: ids in order, and the row and name of each."""

from pathlib import Path

import neuron_tools
from neuron_profile.analysis.time.charged_track import Operations
from neuron_tools.profile.schema import table_schema
from neuron_tools.profile.writer import ProfileWriter
from tests.unit.neuron_profile.small_capture import METADATA

_TABLE = table_schema("FrameworkInstruction")
EMPTY: dict[str, object] = {"int64": 0, "string": "", "list<int64>": []}
REQUIRED = {name: EMPTY[_TABLE.by_name[name].type] for name in _TABLE.required}


def rows_of(ids: list[int], names: list[str | None]) -> dict[str, list[object]]:
    rows = {column: [value] * len(ids) for column, value in REQUIRED.items()}
    return rows | {"id": list(ids), "framework_name": list(names)}


def test_operations_keep_their_row_and_name(tmp_path: Path) -> None:
    writer = ProfileWriter(tmp_path / "p.nprof", METADATA)
    writer.append("FrameworkInstruction", rows_of([7, 9, 3], ["dot", "copy", None]))
    writer.append("FrameworkInstruction", rows_of([5], ["dot"]))
    writer.close(True)
    with neuron_tools.open_profile(tmp_path / "p.nprof") as profile:
        found = Operations.of(profile, "framework")
        stored = profile.query("SELECT id FROM FrameworkInstruction")["id"].to_pylist()
    assert found.ids.tolist() == [3, 5, 7, 9]
    assert [stored[row] for row in found.rows] == [3, 5, 7, 9]
    assert found.names.take(found.rows).to_pylist() == ["", "dot", "dot", "copy"]


def test_a_profile_without_operations_has_none(tmp_path: Path) -> None:
    ProfileWriter(tmp_path / "p.nprof", METADATA).close(True)
    with neuron_tools.open_profile(tmp_path / "p.nprof") as profile:
        found = Operations.of(profile, "framework")
    assert (found.ids.tolist(), found.names.to_pylist(), found.mixtures) == ([], [], [])
