"""When collective operations ended: moments that all ranks of a job share, whatever their clocks say."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.json_rows import JsonRows
from neuron_tools.profile.store.recorded import text_codes

MOST_PER_NAME = 1 << 14
_COLLECTIVE = re.compile(
    r"(?:nccl|rccl|hccl|neuron|cc).{0,40}?(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast)",
    re.IGNORECASE,
)
_DEVICE_CATEGORIES = frozenset({"kernel", "gpu_kernel", "collective", "cc"})


class CollectiveEnds:
    """Gathers the ends of collective kernels by kind, in order of time."""

    def __init__(self) -> None:
        self._ends: dict[str, list[Ints]] = defaultdict(list)

    def add(self, rows: JsonRows, names: pa.DictionaryArray, time_ns: Ints) -> None:
        """Looks through complete events; `time_ns`, int64, shape (rows,), are their starts."""
        kinds = [_COLLECTIVE.search(name) for name in names.dictionary.to_pylist()]
        if not any(kinds):
            return
        categories = rows.texts("cat")
        on_device = np.array(
            [text in _DEVICE_CATEGORIES for text in categories.dictionary.to_pylist()] + [False]
        )
        is_kind = np.array([found is not None for found in kinds] + [False])
        codes = text_codes(names)
        chosen = np.flatnonzero(is_kind[codes] & on_device[text_codes(categories)])
        duration, _ = rows.scaled("dur", 3)
        for code in np.unique(codes[chosen]):
            found = kinds[code]
            assert found is not None
            own = chosen[codes[chosen] == code]
            self._ends[found.group(1).lower().replace("_", "")].append(time_ns[own] + duration[own])

    def ends(self) -> dict[str, Ints]:
        """Ends by kind of collective, int64, ascending; the first 16 Ki of each."""
        return {kind: np.sort(np.concatenate(parts))[:MOST_PER_NAME] for kind, parts in self._ends.items()}
