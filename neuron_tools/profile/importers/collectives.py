"""When collective operations ended: moments that all ranks of a job share, whatever their clocks say."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pyarrow as pa

from neuron_tools.profile.importers.json_rows import JsonRows
from neuron_tools.profile.importers.json_scan import Int64Array

MOST_PER_NAME = 1 << 14
_COLLECTIVE = re.compile(
    r"(?:nccl|rccl|hccl|neuron|cc).{0,40}?(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast)",
    re.IGNORECASE,
)
_DEVICE_CATEGORIES = frozenset({"kernel", "gpu_kernel", "collective", "cc"})


class CollectiveEnds:
    """Gathers the ends of collective kernels by kind, in order of time."""

    def __init__(self) -> None:
        self._ends: dict[str, list[Int64Array]] = defaultdict(list)

    def add(self, rows: JsonRows, names: pa.DictionaryArray, time_ns: Int64Array) -> None:
        """Looks through complete events; `time_ns`, int64, shape (rows,), are their starts."""
        kinds = [_COLLECTIVE.search(name) for name in names.dictionary.to_pylist()]
        if not any(kinds):
            return
        categories = rows.texts("cat").to_pylist()
        codes = names.indices.to_pylist()
        duration, _ = rows.scaled("dur", 3)
        for row, code in enumerate(codes):
            found = kinds[code] if code is not None else None
            if found is not None and categories[row] in _DEVICE_CATEGORIES:
                end = np.array([time_ns[row] + duration[row]])
                self._ends[found.group(1).lower().replace("_", "")].append(end)

    def ends(self) -> dict[str, Int64Array]:
        """Ends by kind of collective, int64, ascending; the first 16 Ki of each."""
        return {kind: np.sort(np.concatenate(parts))[:MOST_PER_NAME] for kind, parts in self._ends.items()}
