"""The operations that a track is charged with: ids in order, and the row and name of each."""

from pathlib import Path

import neuron_tools
from neuron_profile.analysis.time.charged_track import Operations
from neuron_tools.profile.schema import table_schema
from neuron_tools.profile.writer import ProfileWriter
from tests.unit.neuron_profile.small_capture import METADATA

_HLO = table_schema("HloInstruction")
TEXTS = [name for name in _HLO.required if _HLO.by_name[name].type == "string"]
NUMBERS = {*_HLO.required, "start_ts", "end_ts"} - {*TEXTS}


def hlo_rows(ids: list[int], names: list[str | None]) -> dict[str, list[object]]:
    rows: dict[str, list[object]] = {column: [""] * len(ids) for column in TEXTS}
    rows |= {column: list(range(len(ids))) for column in NUMBERS}
    return rows | {"raw_hlo_id": list(ids), "hlo_name": list(names)}


def test_operations_keep_their_row_and_name(tmp_path: Path) -> None:
    writer = ProfileWriter(tmp_path / "p.nprof", METADATA)
    writer.append("HloInstruction", hlo_rows([7, 9, 3], ["dot", "copy", None]))
    writer.append("HloInstruction", hlo_rows([5], ["dot"]))
    writer.close(True)
    with neuron_tools.open_profile(tmp_path / "p.nprof") as profile:
        found = Operations.of(profile, "hlo")
        stored = profile.query("SELECT raw_hlo_id AS id FROM HloInstruction")["id"].to_pylist()
    assert found.ids.tolist() == [3, 5, 7, 9]
    assert [stored[row] for row in found.rows] == [3, 5, 7, 9]
    assert found.names.take(found.rows).to_pylist() == ["", "dot", "dot", "copy"]


def test_a_profile_without_operations_has_none(tmp_path: Path) -> None:
    ProfileWriter(tmp_path / "p.nprof", METADATA).close(True)
    with neuron_tools.open_profile(tmp_path / "p.nprof") as profile:
        found = Operations.of(profile, "framework")
    assert (found.ids.tolist(), found.names.to_pylist(), found.mixtures) == ([], [], [])
