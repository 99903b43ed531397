"""Tensors in HBM: size, how often each is loaded, who reads and writes it, and when it is held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

MOST = 150
OF = " of "
# Programs number their own buffers and results: "intermediate.4" is another tensor in each of them.
_OWN = "('intermediate', 'output')"
_PLACED = f"""
WITH programs AS (
    SELECT coalesce(process_idx, 0) AS process, executable_idx, any_value(name) AS program
    FROM Executable GROUP BY ALL
), told AS (
    SELECT variable_name AS name, CASE WHEN type IN {_OWN} THEN coalesce(program, '') ELSE '' END AS program,
        any_value(type) AS kind, any_value(format) AS dtype,
        any_value(shape) AS shape, any_value(size) AS byte_count, max(load_to_sbuf_repeat_factor) AS loads,
        CAST(max(load_to_sbuf_total_size_bytes) AS BIGINT) AS loaded_bytes
    FROM TensorInfo t LEFT JOIN programs p
        ON p.process = coalesce(t.process_idx, 0) AND p.executable_idx = t.executable_idx
    WHERE variable_name IS NOT NULL GROUP BY 1, 2
), ran AS (
    SELECT h.id, any_value(program) AS program FROM HloInstruction h JOIN programs p
        ON p.process = coalesce(h.process_idx, 0) AND p.executable_idx = h.executable_idx
    GROUP BY h.id
), transfers AS (
    SELECT d.*, variable AS name, CASE WHEN shared.name IS NULL THEN coalesce(ran.program, '')
        ELSE coalesce(own.program, '') END AS program
    FROM DmaPacketAggregated d LEFT JOIN ran ON ran.id = d.raw_hlo_id
        LEFT JOIN told own ON own.name = d.variable AND own.program = ran.program
        LEFT JOIN told shared ON shared.name = d.variable AND shared.program = ''
    WHERE coalesce(variable, '') <> ''
)
"""
_TENSORS = f"""
{_PLACED}, moved AS (
    SELECT name, program,
        CAST(sum(transfer_bytes) FILTER (source = 'HBM' OR dest <> 'HBM') AS BIGINT) AS read_bytes,
        CAST(sum(transfer_bytes) FILTER (dest = 'HBM') AS BIGINT) AS written_bytes,
        count(*) AS transfers, min(start_ts) AS first_ns, max(end_ts) AS last_ns
    FROM transfers GROUP BY 1, 2
)
SELECT name, program, coalesce(kind, '') AS kind, coalesce(dtype, '') AS dtype, coalesce(shape, '') AS shape,
    byte_count, loads, coalesce(read_bytes, loaded_bytes, 0) AS read_bytes,
    coalesce(written_bytes, 0) AS written_bytes, coalesce(transfers, 0) AS transfers, first_ns, last_ns
FROM told {{join}} JOIN moved USING (name, program)
ORDER BY read_bytes + written_bytes DESC, byte_count DESC NULLS LAST, name, program LIMIT {MOST}
"""
_USERS = f"""
{_PLACED}
SELECT dest = 'HBM' AS writes, coalesce(framework_name, hlo_name, '') AS operation,
    coalesce(layer, '') AS module, coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line,
    count(*) AS transfers, CAST(sum(transfer_bytes) AS BIGINT) AS byte_count,
    CAST(sum(duration_ns) AS BIGINT) AS time_ns
FROM transfers WHERE name = ? AND program = ? GROUP BY ALL ORDER BY byte_count DESC, operation, line
"""
_HELD = """
WITH events AS (
    SELECT *, coalesce(process_idx, 0) AS process FROM MemoryEvent
), periods AS (
    SELECT process, address, size, kind, timestamp AS from_ns,
        lead(timestamp) OVER (PARTITION BY process, address ORDER BY event_idx) AS until_ns
    FROM events
)
SELECT name, category, address, size AS byte_count, from_ns, until_ns
FROM periods JOIN (SELECT coalesce(process_idx, 0) AS process, address, name, category FROM TensorName)
USING (process, address) WHERE kind = 'allocate' ORDER BY from_ns, name
"""


@frozen
class Tensor:
    """A tensor, or a buffer between two operations of a program.

    Attributes:
        program: Whose buffer or result it is; "" for what programs share, such as weights.
        byte_count: Its size; None where no table tells it.
        loads: How often all of it is loaded in one execution; None where that is not known.
        read_bytes, written_bytes: What transfers moved out of it, and into it, in what is looked at.
        first_ns, last_ns: From its first transfer to the end of the last; None where there is none.
        held: From when until when memory is held for it; None as end where it is never given back.
    """

    name: str
    program: str
    kind: str
    dtype: str
    shape: str
    byte_count: int | None
    loads: float | None
    read_bytes: int
    written_bytes: int
    transfers: int
    first_ns: int | None
    last_ns: int | None
    held: tuple[tuple[int, int | None], ...] = ()

    @property
    def title(self) -> str:
        """What tells it from all others: "intermediate.4 of Net_backward"."""
        return f"{self.name}{OF}{self.program}" if self.program else self.name


@frozen
class TensorUser:
    """An operation at a line that reads or writes a tensor; `time_ns` is that of its transfers."""

    writes: bool
    operation: str
    module: str
    file: str
    line: int
    transfers: int
    byte_count: int
    time_ns: int


def find_tensors(profile: Profile) -> tuple[Tensor, ...]:
    """The tensors of which most is moved, at most `MOST`; of a range those that are moved in it."""
    join = "FULL" if profile.range_ns is None else "RIGHT"
    held = _held(profile.query(_HELD).to_pylist())
    rows = profile.query(_TENSORS.format(join=join)).to_pylist()
    return tuple(Tensor(**row, held=held.get(_end(row["name"]), ())) for row in rows)


def find_users(profile: Profile, tensor: str) -> tuple[TensorUser, ...]:
    """Who reads and writes a tensor, given by its title, by falling bytes."""
    name, _, program = tensor.partition(OF)
    return tuple(TensorUser(**row) for row in profile.query(_USERS, [name, program]).to_pylist())


def _held(rows: list[Mapping[str, Any]]) -> dict[str, tuple[tuple[int, int | None], ...]]:
    """Periods by the end of a tensor's path: a program calls a parameter as its module does."""
    found: defaultdict[str, list[tuple[int, int | None]]] = defaultdict(list)
    for row in rows:
        found[_end(row["name"])].append((row["from_ns"], row["until_ns"]))
    return {name: tuple(periods) for name, periods in found.items() if len(set(periods)) == len(periods)}


def _end(name: str) -> str:
    """The path without the model's own name: "Transformer.head.weight" is "head.weight"."""
    head, _, rest = name.partition(".")
    return rest if rest and head[:1].isupper() else name
