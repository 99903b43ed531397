"""What names of spans tell: the source line of a Python function, the number in a device's label."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

TEXTS = pa.dictionary(pa.int32(), pa.string())
_PYTHON_FUNCTION = re.compile(r"^(.+)\((\d{1,10})\): .+$", re.DOTALL)
_XLA_FUNCTION = re.compile(r"^\$(.+?):(\d{1,10}) .+$", re.DOTALL)
_SOURCE = re.compile(r"^(.+):(\d{1,10})$", re.DOTALL)
_PLANE = re.compile(r"^/device:[A-Za-z0-9_ ]+?:(\d{1,6})\b")
_RANK = re.compile(r"^rank (\d{1,6}): ")
_DEVICE = re.compile(
    r"^(?:GPU|NPU|XPU|TPU|HPU|MTIA|Neuron(?:Core|Device)?|device)[ :]*(\d{1,6})\b", re.IGNORECASE
)


def split_rank(title: str) -> tuple[int | None, str]:
    """Rank and name of a process by the title that our exports write: 3 and `a.py` of `rank 3: a.py`."""
    found = _RANK.match(title)
    return (int(found[1]), title[found.end() :]) if found else (None, title)


def python_function_place(name: str) -> tuple[str, int] | None:
    """File and line of a torch.profiler Python function: `torch/nn/modules/module.py(1773): _call_impl`."""
    return _place(_PYTHON_FUNCTION, name)


def xla_function_place(name: str) -> tuple[str, int] | None:
    """File and line of a Python function in XLA's profiles: `$array_creation.py:98 ones`."""
    return _place(_XLA_FUNCTION, name)


def source_place(text: str) -> tuple[str, int] | None:
    """File and line of `model.py:12`."""
    return _place(_SOURCE, text)


def device_number(label: str) -> int | None:
    """The number of a device's label: 3 of `GPU 3`."""
    return _number(_DEVICE, label)


def device_of_plane(name: str) -> int | None:
    """The number of a device's plane in XLA's profiles, `/device:TPU:0`; None for the host's and others."""
    return _number(_PLANE, name)


def places(
    column: pa.DictionaryArray, place: Callable[[str], tuple[str, int] | None]
) -> tuple[pa.Array, pa.Array] | None:
    """Files (dictionary) and lines (int32) of a text column, asked once per text; None if none has any."""
    found = [place(text) for text in column.dictionary.to_pylist()]
    if not any(found):
        return None
    files = pa.array([one[0] if one else None for one in found], pa.string())
    lines = pa.array([one[1] if one else None for one in found], pa.int32())
    return files.take(column.indices).dictionary_encode(), lines.take(column.indices)


def _place(pattern: re.Pattern[str], text: str) -> tuple[str, int] | None:
    found = pattern.match(text)
    if found is None or int(found.group(2)) >= 1 << 31:
        return None
    return found.group(1), int(found.group(2))


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.match(text)
    return int(found.group(1)) if found else None
