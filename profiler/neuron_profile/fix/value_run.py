"""`python -m neuron_profile.fix.value_run FILE.npz SCRIPT [ARGUMENT...]`: keeps what a script computes.

The script runs on the simulated device with fixed seeds, which its own replace; when it ends, the numbers
that its globals hold are written: tensors, arrays, numbers, lists of these, parameters of modules.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

DEPTH, MOST = 3, 10_000
NUMBERS = (bool, int, float, complex, np.generic)


def main(arguments: list[str]) -> int:
    """Run the script, then write its values; its exit status is the script's."""
    output, script, *rest = arguments
    sys.argv = [script, *rest]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    _seed()
    module = ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    status = 0
    try:
        exec(compile(Path(script).read_text(), script, "exec"), module.__dict__)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    np.savez(output, **values_of(vars(module)))
    return status


def values_of(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that a program's globals hold, each with its path; `MOST` arrays at most."""
    found = (item for name, value in list(namespace.items()) for item in _arrays(name, value, 0))
    return dict(islice(found, MOST))


def _seed() -> None:
    random.seed(0)
    np.random.seed(0)
    try:
        import torch
    except ModuleNotFoundError:
        return
    torch.manual_seed(0)


def _arrays(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Numbers below a value, each with its path."""
    if name.startswith("_") or depth > DEPTH or isinstance(value, (ModuleType, type)):
        return
    if hasattr(value, "state_dict") and hasattr(value, "named_parameters"):
        # what torch.compile makes keeps the module below this name
        found = value.state_dict().items()
        yield from _below(name, {key.removeprefix("_orig_mod."): each for key, each in found}, depth)
    elif isinstance(value, (list, tuple)):
        yield from _below(name, dict(enumerate(value)), depth)
    elif isinstance(value, Mapping):
        yield from _below(name, value, depth)
    else:
        array = _array(value)
        if array is not None:
            yield name, array


def _below(name: str, items: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in items.items():
        for path, array in _arrays(str(key), value, depth + 1):
            yield f"{name}.{path}", array


def _array(value: Any) -> Any:
    """The numbers of a tensor, an array or a number; None of anything else."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() else value
    elif not isinstance(value, NUMBERS) and not hasattr(value, "__array__"):
        return None
    try:
        array = np.asarray(value)
        return array.astype(np.float64) if array.dtype.kind in "biufV" else None
    except (TypeError, ValueError):
        return None


if __name__ == "__main__":
    from neuron_tools import compat
    from neuron_tools.__main__ import DEFAULT_TARGET, TIMED_VARIABLE

    os.environ.setdefault(TIMED_VARIABLE, DEFAULT_TARGET)
    compat.install()
    sys.exit(main(sys.argv[1:]))
