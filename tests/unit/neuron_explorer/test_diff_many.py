"""Several profiles side by side on the page Diff."""

from __future__ import annotations

from dataclasses import dataclass, replace

from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.page import View
from neuron_explorer.pages.diff_many import aligned
from tests.unit.neuron_explorer.test_pages import drawn, patience  # noqa: F401  a fixture for each test


@dataclass(frozen=True)
class Row:
    key: str
    base_ns: int
    new_ns: int


def test_rows_are_aligned_and_those_that_differ_most_come_first() -> None:
    """What a comparison leaves out takes as long in both of its profiles."""
    changes = [[Row("a", 10, 30), Row("gone", 5, 0)], [Row("b", 100, 7)]]
    rows = aligned(changes, lambda row: row.key)
    assert [(row.first.key, row.times_ns) for row in rows] == [
        ("b", (7, 100, 7)),
        ("a", (10, 30, 30)),
        ("gone", (5, 0, 0)),
    ]


def slower(tiny_tables, more_ns: int):
    """The tiny profile with a first execution that takes so much longer."""
    events = tiny_tables["SystemProfileEvents"]
    ends = [events["end_ts"][0] + more_ns, *events["end_ts"][1:]]
    return {**tiny_tables, "SystemProfileEvents": {**events, "end_ts": ends}}


def test_three_profiles_have_a_column_each(make_profile, tiny_tables) -> None:
    paths = [
        make_profile(f"run{more}.nprof", tables=slower(tiny_tables, more)) for more in (10, 20, 30, 40, 50)
    ]
    with ProfileLibrary(paths) as library:
        new, *others = map(profile_id, paths)
        view = View(library, Analyses(library), Address("/diff", new))
        one = drawn(view, "/diff", base=others[0])
        both = drawn(view, "/diff", base=",".join(others[:2]))
        assert "Operations that changed" in one
        assert f"base={others[0]}%2C{others[1]}" in one
        assert "Operations that differ" in both
        assert f"compare={others[0]}%2C{others[1]}" in both
        assert all(path.name in both for path in paths[:3])
        unknown = replace(view, address=Address("/diff", new, parameters={"base": "nobody"}))
        assert "Choose the profile" in drawn(unknown, "/diff", base="nobody")
