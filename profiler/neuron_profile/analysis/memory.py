"""Memory: what HBM held at its peak, for whom; how full SBUF and PSUM were; large tensors; what spilled."""

from __future__ import annotations

from neuron_profile.analysis.memory_holders import (
    CategoryBytes,
    MemoryHolder,
    by_category,
    find_memory_holders,
)
from neuron_profile.analysis.transfers import MemoryPeak, find_memory_peaks
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

# A sample holds until the next one; the last has no length.
_ON_CHIP = """
WITH samples AS (
    SELECT coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core, avg_util_percent AS used,
        timestamp, lead(timestamp) OVER (
            PARTITION BY coalesce(process_idx, 0), coalesce(pcore_idx, 0) ORDER BY timestamp
        ) - timestamp AS length_ns
    FROM {table} WHERE avg_util_percent IS NOT NULL
)
SELECT '{name}' AS memory, process, core, max(used) AS peak,
    coalesce(sum(used * length_ns) / nullif(sum(length_ns), 0), avg(used)) AS mean,
    arg_max(timestamp, used) AS peak_at_ns
FROM samples GROUP BY ALL ORDER BY ALL
"""
_TENSORS = """
SELECT variable_name AS name, coalesce(type, '') AS kind, coalesce(format, '') AS dtype,
    coalesce(shape, '') AS shape, any_value(size) AS byte_count,
    coalesce(max(load_to_sbuf_repeat_factor), 0) AS loads
FROM TensorInfo WHERE variable_name IS NOT NULL AND size IS NOT NULL
GROUP BY ALL ORDER BY byte_count DESC, name, shape LIMIT ?
"""
_SPILLS = """
SELECT coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line,
    coalesce(hlo_name, '') AS operation,
    CAST(sum(coalesce(spill_save_bytes, 0)) AS BIGINT) AS saved_bytes,
    CAST(sum(coalesce(spill_reload_bytes, 0)) AS BIGINT) AS reloaded_bytes
FROM Instruction WHERE coalesce(spill_save_bytes, 0) + coalesce(spill_reload_bytes, 0) > 0
GROUP BY ALL ORDER BY saved_bytes + reloaded_bytes DESC, file, line, operation
"""


@frozen
class OnChipUse:
    """How full SBUF or PSUM of one core was, as parts of it (0 to 1); the mean is that over time."""

    memory: str
    process: int
    core: int
    peak: float
    mean: float
    peak_at_ns: int


@frozen
class TensorSize:
    """A tensor in HBM; `loads`: how often all of it is loaded in one execution."""

    name: str
    kind: str
    dtype: str
    shape: str
    byte_count: int
    loads: float


@frozen
class Spill:
    """What one operation at one line saved to HBM and loaded back for want of room."""

    file: str
    line: int
    operation: str
    saved_bytes: int
    reloaded_bytes: int


@frozen
class MemoryUse:
    """The memory of a profile; empty parts are not told by it.

    Attributes:
        held, holders: At the peaks: by category; by tensor where it has a name, else by place.
    """

    peaks: tuple[MemoryPeak, ...]
    held: tuple[CategoryBytes, ...]
    holders: tuple[MemoryHolder, ...]
    on_chip: tuple[OnChipUse, ...]
    tensors: tuple[TensorSize, ...]
    spills: tuple[Spill, ...]


def measure_memory(profile: Profile, tensors: int = 50) -> MemoryUse:
    """Peaks and who holds them, on-chip use, the largest tensors and all spills.

    Args:
        tensors: How many tensors to list.
    """
    on_chip = [
        OnChipUse(**row)
        for name, table in (("SBUF", "SbufUsage"), ("PSUM", "PsumUsage"))
        for row in profile.query(_ON_CHIP.format(name=name, table=table)).to_pylist()
    ]
    holders = find_memory_holders(profile)
    return MemoryUse(
        find_memory_peaks(profile),
        by_category(holders),
        holders,
        tuple(on_chip),
        tuple(TensorSize(**row) for row in profile.query(_TENSORS, [tensors]).to_pylist()),
        tuple(Spill(**row) for row in profile.query(_SPILLS).to_pylist()),
    )
