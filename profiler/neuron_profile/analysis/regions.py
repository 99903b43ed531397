"""Regions of a program, found by themselves: layers, compiled programs, collectives, each measured.

Layers of one family, as the blocks of a model, do the same: what one of them takes is held against the median
of its family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from statistics import median
from typing import Any

from neuron_profile.analysis.time.charges import Charge, charge_device_time
from neuron_profile.analysis.time.logical_cores import of_first_cores
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

LAYER, PROGRAM, COLLECTIVE = "layer", "program", "collective"
_BUSY = """
SELECT coalesce(layer, '') AS module, coalesce(engine, '') AS engine,
    CAST(sum(duration_ns) AS BIGINT) AS busy_ns, CAST(sum(coalesce(raw_flops, 0)) AS BIGINT) AS flops
FROM Instruction GROUP BY ALL
"""
_MOVED = """
SELECT coalesce(layer, '') AS module, CAST(sum(coalesce(transfer_bytes, 0)) AS BIGINT) AS moved_bytes
FROM DmaPacketAggregated GROUP BY ALL
"""
_PROGRAMS = """
WITH programs AS (
    SELECT coalesce(process_idx, 0) AS process, executable_idx, name, kind FROM Executable
)
SELECT executable_idx AS number, coalesce(any_value(name), any_value(neff_name), '') AS name,
    coalesce(any_value(kind), 'program') AS kind, count(*) AS executions,
    CAST(sum(execution_end_ts - execution_start_ts) AS BIGINT) AS device_ns
FROM ExecutionInfo LEFT JOIN programs USING (executable_idx)
WHERE (process IS NULL OR process = coalesce(process_idx, 0)) AND {chosen}
GROUP BY ALL ORDER BY device_ns DESC, number
"""
_COLLECTIVES = """
SELECT coalesce(operation, '') AS name, coalesce(input_size, 0) AS byte_count, count(*) AS calls,
    CAST(sum(end_ts - start_ts) AS BIGINT) AS device_ns
FROM CcOp GROUP BY ALL ORDER BY device_ns DESC, name, byte_count
"""


@frozen
class Region:
    """A region; what is not known of its kind is None or empty.

    Attributes:
        kind: `LAYER`, `PROGRAM` or `COLLECTIVE`.
        key: What it is named by: a module's path, a program's number, a collective and its size.
        family: What does the same: "/model/layers/*".
        count: Operations of a layer, executions of a program, calls of a collective.
        device_ns: Charged device time of a layer; the time in which a program, or a collective, ran.
        backward_ns: What of it belongs to backward passes.
        moved_bytes: Bytes of its transfers.
        flops: Floating-point operations of the Tensor engine.
        busy_ns: Time of its instructions by engine.
        of_median: `device_ns` as a multiple of its family's median; None where it is alone.
    """

    kind: str
    key: str
    name: str
    family: str
    count: int
    device_ns: float
    backward_ns: float = 0.0
    moved_bytes: int | None = None
    flops: int | None = None
    busy_ns: Mapping[str, int] = field(default_factory=dict)
    of_median: float | None = None


def find_regions(profile: Profile) -> tuple[Region, ...]:
    """The regions of a profile, or of a range of it: layers, programs, collectives, each by falling time."""
    found = [*_layers(profile), *_programs(profile), *_collectives(profile)]
    return tuple(_compared(found))


def layer_of(module: str) -> str:
    """The layer that a module belongs to: up to the first part that is a number, else its first two parts.

    Example:
        >>> layer_of("/model/layers/3/mlp/up"), layer_of("/model/embedding/table")
        ('/model/layers/3', '/model/embedding')
    """
    parts = [part for part in module.split("/") if part]
    numbers = [place for place, part in enumerate(parts) if part.isdecimal()]
    return "/" + "/".join(parts[: numbers[0] + 1 if numbers else 2])


def family_of(layer: str) -> str:
    """Layers that differ in their number only are one family."""
    head, _, last = layer.rpartition("/")
    return f"{head}/*" if last.isdecimal() else layer


def _layers(profile: Profile) -> list[Region]:
    charges = charge_device_time(profile).charges
    moved = _summed(profile.query(_MOVED).to_pylist(), "moved_bytes")
    busy, flops = _engines(profile.query(_BUSY).to_pylist())
    by_layer: defaultdict[str, list[Charge]] = defaultdict(list)
    for charge in charges:
        if charge.origin.module:
            by_layer[layer_of(charge.origin.module)].append(charge)
    regions = [
        Region(
            LAYER, layer, layer, family_of(layer), sum(charge.count for charge in own),
            sum(charge.device_ns for charge in own),
            sum(charge.device_ns for charge in own if charge.origin.backward),
            moved.get(layer, 0), flops.get(layer, 0), busy.get(layer, {}),
        )
        for layer, own in by_layer.items()
    ]  # fmt: skip
    return sorted(regions, key=lambda region: (-region.device_ns, region.key))


def _summed(rows: Iterable[Mapping[str, Any]], column: str) -> dict[str, int]:
    sums: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        sums[layer_of(row["module"])] += row[column]
    return sums


def _engines(rows: list[dict[str, Any]]) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Time of instructions by layer and engine, and floating-point operations by layer."""
    busy: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        of_layer = busy[layer_of(row["module"])]
        of_layer[row["engine"]] = of_layer.get(row["engine"], 0) + row["busy_ns"]
    return busy, _summed(rows, "flops")


def _programs(profile: Profile) -> Iterator[Region]:
    for row in profile.query(_PROGRAMS.format(chosen=of_first_cores(profile))).to_pylist():
        number, name = row["number"], row["name"]
        key = str(number) if number is not None else name
        yield Region(PROGRAM, key, name, key, row["executions"], row["device_ns"])


def _collectives(profile: Profile) -> Iterator[Region]:
    for row in profile.query(_COLLECTIVES).to_pylist():
        key = f"{row['name']} of {row['byte_count']:,} B"
        yield Region(
            COLLECTIVE, key, key, row["name"], row["calls"], row["device_ns"], moved_bytes=row["byte_count"]
        )


def _compared(regions: list[Region]) -> Iterator[Region]:
    """Regions with what they take of their family's median: of a family of several."""
    times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for region in regions:
        times[region.kind, region.family].append(region.device_ns)
    for region in regions:
        own = times[region.kind, region.family]
        usual = median(own)
        is_comparable = region.kind == LAYER and len(own) > 1 and usual > 0
        yield replace(region, of_median=region.device_ns / usual) if is_comparable else region
