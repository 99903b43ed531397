from collections.abc import Iterator

import pytest

from neuron_explorer.grid_rows import (
    REACHABLE,
    GridRequestError,
    count_rows,
    read_request,
    read_rows,
    table_rows,
)
from neuron_explorer.grid_sources import SOURCES, groups, keyed_rows
from neuron_tools import open_profile
from neuron_tools.profile.reader import Profile

INSTRUCTIONS = SOURCES["instructions"]


@pytest.fixture
def profile(make_profile) -> Iterator[Profile]:
    with open_profile(make_profile()) as opened:
        yield opened


def rows(profile: Profile, source: str = "instructions", **asked: object) -> list[dict[str, object]]:
    chosen = SOURCES[source]
    return read_rows(profile, chosen, read_request(chosen, asked))


def text(kind: str, value: str) -> dict[str, str]:
    return {"filterType": "text", "type": kind, "filter": value}


def number(kind: str, value: float, to: float | None = None) -> dict[str, object]:
    return {"filterType": "number", "type": kind, "filter": value, "filterTo": to}


def test_rows_come_in_the_asked_order(profile: Profile) -> None:
    falling = rows(profile, sortModel=[{"colId": "start_ts", "sort": "desc"}])
    assert [row["id"] for row in falling] == [15, 14, 13, 12, 11]
    assert [row["id"] for row in rows(profile)][:2] == [12, 14]  # the longest, by number


def test_blocks_share_the_keys_that_one_of_them_asked_for(profile: Profile) -> None:
    asked: list[tuple[int, int]] = []
    request = read_request(INSTRUCTIONS, {"startRow": 1, "endRow": 3})

    def keys_of(first: int, last: int) -> list[int]:
        asked.append((first, last))
        return [15, 14, 13, 12, 11]

    assert [row["id"] for row in keyed_rows(profile, INSTRUCTIONS, request, keys_of)] == [14, 13]
    assert asked == [(0, 1000)]


def test_a_block_is_a_part_of_the_order(profile: Profile) -> None:
    asked = {"sortModel": [{"colId": "start_ts", "sort": "asc"}], "startRow": 1, "endRow": 3}
    assert [row["id"] for row in rows(profile, **asked)] == [12, 13]


@pytest.mark.parametrize(
    ("model", "ids"),
    [
        ({"engine": text("contains", "TENS")}, [12, 14]),
        ({"engine": text("notEqual", "tensor")}, [11, 13, 15]),
        ({"opcode": text("startsWith", "act")}, [15]),
        ({"duration_ns": number("greaterThan", 30)}, [12, 14]),
        ({"duration_ns": number("inRange", 1, 30)}, [11, 13, 15]),
        ({"layer": {"type": "blank"}}, [11, 12, 13, 14, 15]),
        ({"engine": text("equals", "Tensor"), "start_ts": number("lessThan", 1100)}, [12]),
        ({"opcode": {"operator": "OR", "conditions": [text("equals", "MATMUL"), text("equals", "ACTIVATE")]}},
         [12, 14, 15]),
        ({"engine": text("contains", "' OR 1=1 --")}, []),
    ],
)  # fmt: skip
def test_filters_choose_rows(profile: Profile, model: dict[str, object], ids: list[int]) -> None:
    found = rows(profile, filterModel=model, sortModel=[{"colId": "id", "sort": "asc"}])
    assert [row["id"] for row in found] == ids
    assert count_rows(profile, INSTRUCTIONS, read_request(INSTRUCTIONS, {"filterModel": model})) == len(ids)


@pytest.mark.parametrize(
    "asked",
    [
        {"sortModel": [{"colId": "1; DROP TABLE x", "sort": "asc"}]},
        {"filterModel": {'id" OR 1=1 --': text("equals", "1")}},
        {"filterModel": {"id": {"type": "evil", "filter": 1}}},
        {"filterModel": {"id": "x"}},
        {"filterModel": {"id": {"operator": "OR", "conditions": [number("equals", 1)] * 99}} | {
            name: {"conditions": [text("equals", "x")] * 19} for name in ("engine", "opcode")}},
        {"startRow": -1},
        {"startRow": "0"},
    ],
)  # fmt: skip
def test_what_the_table_does_not_have_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(GridRequestError):
        read_request(INSTRUCTIONS, asked)


def test_a_request_is_bounded() -> None:
    request = read_request(INSTRUCTIONS, {"startRow": 9_950, "endRow": 10**9})
    assert request.end == REACHABLE


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_every_source_reads_every_profile(profile: Profile, make_profile, source: str) -> None:
    assert isinstance(rows(profile, source), list)
    with open_profile(make_profile("empty.nprof", {})) as empty:
        assert rows(empty, source) == []


@pytest.mark.parametrize("source", sorted(name for name, one in SOURCES.items() if one.is_grouped))
def test_kept_groups_give_the_same_rows_as_the_database(profile: Profile, source: str) -> None:
    chosen = SOURCES[source]
    name = chosen.columns[0].name
    for asked in (
        {},
        {"filterModel": {name: text("contains", "a")}},
        {"sortModel": [{"colId": name, "sort": "asc"}]},
    ):
        request = read_request(chosen, asked)
        kept, total = table_rows(groups(profile, source), chosen, request)
        assert kept == read_rows(profile, chosen, request)
        assert total == count_rows(profile, chosen, request)


def test_groups_add_up(profile: Profile) -> None:
    (tensor,) = [row for row in rows(profile, "opcode") if row["engine"] == "Tensor"]
    assert (tensor["time_ns"], tensor["count"], tensor["longest_ns"]) == (80, 2, 40)
