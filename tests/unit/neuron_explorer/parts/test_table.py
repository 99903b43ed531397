"""Tables as compact columns: each cell is there again, and what cells have alike stands once."""

from __future__ import annotations

from typing import Any

from neuron_explorer.parts.quantities import Cell, CellLink, time_cell
from neuron_explorer.parts.table import table
from tests.unit.neuron_explorer.packed_tables import tables_of


def packed(*rows: Any) -> Any:
    made = table([f"column {place}" for place, _ in enumerate(rows[0])], rows, "Things")
    return made, tables_of(made)["Things"]


def test_each_cell_has_what_it_had() -> None:
    links = (CellLink("advice", "/advice", "", "how"),)
    cells = [
        [Cell("a", href="/source?file=x&line=1&of=all", title="the first"), time_cell(1500.0)],
        [Cell("b", href="/source?file=y&line=12&of=all"), Cell("", "", True)],
        [Cell("c", share=0.25, links=links), time_cell(2e6)],
    ]
    _, rows = packed(*cells)
    assert rows == [
        [("a", {"h": "/source?file=x&line=1&of=all", "t": "the first"}), ("1.50 µs", {"v": 1500, "n": True})],
        [("b", {"h": "/source?file=y&line=12&of=all"}), ("", {"v": "", "n": True})],
        [("c", {"b": 0.25, "l": [["advice", "/advice", "", "how"]]}), ("2.00 ms", {"v": 2000000, "n": True})],
    ]  # fmt: skip


def test_what_all_cells_have_alike_stands_once() -> None:
    rows = [[Cell(str(line), href=f"/source?file=decoder.py&line={line}&scope=all")] for line in range(50)]
    made, built = packed(*rows)
    assert str(made).count("decoder.py") == str(made).count("scope=all") == 1
    assert built[7][0][1]["h"] == "/source?file=decoder.py&line=7&scope=all"


def test_a_table_without_rows_has_its_headings() -> None:
    assert '"heading":"Line"' in str(table(["Line"], [], "Lines"))
