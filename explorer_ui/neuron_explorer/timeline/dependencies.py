"""What a span waited for, and what waited for it, a few steps up and down the chain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from neuron_explorer.timeline.track_places import columns_of, places_by_row, row_columns, sources_of
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

STEPS = 6
MOST_SPANS = 200
"""Spans of one answer: more arrows than that show nothing."""
SPANS_LOOKED_AT = 4096

Key = tuple[str, int]
"""Table and id of a row."""


@dataclass
class _Chain:
    spans: dict[Key, dict[str, Any]] = field(default_factory=dict)
    edges: list[tuple[Key, Key, str]] = field(default_factory=list)


def dependency_chain(profile: Profile, track: Track, row: int, origin_ns: int = 0) -> dict[str, Any]:
    """The chain through a span.

    Returns:
        `spans`: `track` (place), `depth`, `start_ns`, `duration_ns`, `name`; `edges`: `from` and `to`
        (places among `spans`) and `kind`. Both are empty where the profile says nothing of it.
    """
    tables = profile.tables()
    first = profile.row(track.table, row).get("id")
    if first is None:
        return {"spans": [], "edges": []}
    chain = _Chain()
    start: Key = (track.table, int(first))
    _add(profile, chain, [start])
    for is_up in (True, False):
        frontier = [start]
        for _ in range(STEPS):
            edges = [
                edge for edge in _edges(profile, tables, frontier, is_up=is_up) if edge not in chain.edges
            ]
            room = MOST_SPANS - len(chain.spans)
            frontier = _add(profile, chain, [edge[0] if is_up else edge[1] for edge in edges][: max(room, 0)])
            chain.edges += [edge for edge in edges if edge[0] in chain.spans and edge[1] in chain.spans]
            if not frontier:
                break
    return _answer(chain, origin_ns)


def _answer(chain: _Chain, origin_ns: int) -> dict[str, Any]:
    numbers = {key: number for number, key in enumerate(chain.spans)}
    return {
        "spans": [{**span, "start_ns": span["start_ns"] - origin_ns} for span in chain.spans.values()],
        "edges": [
            {"from": numbers[one], "to": numbers[other], "kind": kind} for one, other, kind in chain.edges
        ],
    }


def _edges(
    profile: Profile, tables: dict[str, int], keys: list[Key], *, is_up: bool
) -> list[tuple[Key, Key, str]]:
    """Dependencies that end (up) or begin (down) at rows."""
    found: list[tuple[Key, Key, str]] = []
    ids = sorted({number for _, number in keys})
    if "Flow" in tables:
        column = "out" if is_up else "in"
        rows = profile.query(
            "SELECT in_table, in_id, out_table, out_id, coalesce(dependency_type, '') AS kind FROM Flow"
            f" WHERE {column}_id IN ({_listed(ids)}) LIMIT {4 * MOST_SPANS}"
        ).to_pylist()
        for one in rows:
            edge = ((one["in_table"], one["in_id"]), (one["out_table"], one["out_id"]), one["kind"])
            if edge[1 if is_up else 0] in keys:
                found.append(edge)
    elif "Instruction" in tables and "wait_cause_id" in columns_of(profile, "Instruction"):
        found += _waits(profile, keys, ids, is_up=is_up)
    return found


def _waits(profile: Profile, keys: list[Key], ids: list[int], *, is_up: bool) -> list[tuple[Key, Key, str]]:
    """The same from the instructions' own column, where the profile has no Flow rows."""
    column = "id" if is_up else "wait_cause_id"
    rows = profile.query(
        f"SELECT id, wait_cause_id AS cause FROM Instruction WHERE {column} IN ({_listed(ids)})"
        f" AND wait_cause_id IS NOT NULL AND evt_wait_time_ns > 0 LIMIT {4 * MOST_SPANS}"
    ).to_pylist()
    causes = _tables_of(profile, [row["cause"] for row in rows])
    edges = [((causes[row["cause"]], row["cause"]), ("Instruction", row["id"]), "semaphore")
             for row in rows if row["cause"] in causes]  # fmt: skip
    return [edge for edge in edges if edge[1 if is_up else 0] in keys and edge[0] != edge[1]]


def _tables_of(profile: Profile, ids: Iterable[int]) -> dict[int, str]:
    """Which table each id stands in: an instruction's or a DMA transfer's."""
    wanted = sorted(set(ids))
    found: dict[int, str] = {}
    for table in ("DmaPacketAggregated", "Instruction"):
        if wanted and table in profile.tables():
            rows = profile.query(f'SELECT id FROM "{table}" WHERE id IN ({_listed(wanted)})').to_pylist()
            found.update({row["id"]: table for row in rows})
    return found


def _add(profile: Profile, chain: _Chain, keys: list[Key]) -> list[Key]:
    """Look up the spans of rows that the chain does not have yet; those that were found."""
    added: list[Key] = []
    fresh = [key for key in dict.fromkeys(keys) if key not in chain.spans]
    for table in dict.fromkeys(table for table, _ in fresh):
        ids = [number for one, number in fresh if one == table]
        for key, span in _spans(profile, table, ids).items():
            chain.spans[key] = span
            added.append(key)
    return added


def _spans(profile: Profile, table: str, ids: list[int]) -> dict[Key, dict[str, Any]]:
    source = next(iter(sources_of(table)), None)
    if source is None:
        return {}
    held = columns_of(profile, table)
    columns = row_columns(source, held)
    if columns is None or "id" not in held:
        return {}
    rows = profile.query(
        f"SELECT id, {columns.start} AS start_ns, {columns.end} - {columns.start} AS duration_ns,"
        f" {columns.name} AS name, {columns.process} AS process, {columns.core} AS core,"
        f" {columns.apart} AS apart"
        f' FROM "{table}" WHERE id IN ({_listed(ids)})'
    ).to_pylist()
    places = places_by_row(profile, source)
    found = {}
    for row in rows:
        place = places.get((row["process"], row["core"], row["apart"]))
        if place is None:
            continue
        start, duration = int(row["start_ns"]), int(row["duration_ns"])
        found[table, int(row["id"])] = {
            "track": place,
            "depth": depth_of(profile, place, start, duration),
            "start_ns": start,
            "duration_ns": duration,
            "name": row["name"],
        }
    return found


def depth_of(profile: Profile, place: int, start_ns: int, duration_ns: int) -> int:
    """Depth at which a span stands on its track; 0 where it is not found."""
    track = profile.tracks()[place]
    if track.depths <= 1:
        return 0
    near = profile.spans(track, start_ns, start_ns + 1, SPANS_LOOKED_AT)
    columns = (near.column(name).to_pylist() for name in ("depth", "start_ns", "duration_ns"))
    for depth, start, duration in zip(*columns, strict=True):
        if start == start_ns and duration == duration_ns:
            return int(depth)
    return 0


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(str(int(number)) for number in ids) or "NULL"
