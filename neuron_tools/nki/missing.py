"""What a module says when a kernel asks it for a name that it does not have."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from neuron_tools.nki.errors import MissingApiError
from neuron_tools.nki.tracer import where


def missing_name(module: str, short: str, space: Mapping[str, Any]) -> Callable[[str], Any]:
    """A module's `__getattr__`: names the call, the dialect, the kernel's line and what exists nearby."""
    dialect = "older dialect" if module.startswith("neuronxcc") else "present dialect"

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        frame = sys._getframe(1)
        prefix = str(space["__name__"]).removesuffix(module)
        near = [f"{elsewhere}.{name}" for elsewhere in _homes(module, name, prefix)]
        near += [f"{short}.{found}" for found in _alike(name, space)]
        nearby = f"; nearby: {', '.join(near[:4])}" if near else ""
        raise MissingApiError(
            f"{short}.{name} does not exist in {module} ({dialect}){nearby}",
            f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}",
        )

    return __getattr__


_OF_FRAMEWORKS = {
    "T": "turn a tile with nisa.nc_transpose, or take a view with permute",
    "item": "values are known on the device only",
    "tolist": "values are known on the device only",
    "numpy": "values are known on the device only",
}
"""What arrays of NumPy and PyTorch have and tensors of NKI do not, with what to do."""


def missing_attribute(tensor: object, name: str) -> AttributeError:
    """The error for an attribute that a tensor does not have, at the kernel's line."""
    if name.startswith("__"):
        return AttributeError(name)
    known = [known for known in dir(type(tensor)) if not known.startswith("_")]
    near = ", ".join(difflib.get_close_matches(name, known, n=3))
    advice = _OF_FRAMEWORKS.get(name) or (f"nearby: {near}" if near else "use nki.language or nki.isa")
    return MissingApiError(f"a tensor has no attribute {name!r}; {advice}", where())


def _homes(module: str, name: str, prefix: str) -> list[str]:
    """Modules of the language, in either dialect, that do have the name; `prefix` is where they lie."""
    package, _, part = module.rpartition("nki")
    parts = [part, *(sibling for sibling in (".language", ".isa", "") if sibling != part)]
    modules = [f"{root}nki{part}" for root in (package, "" if package else "neuronxcc.") for part in parts]
    return [found for found in modules if name in vars(sys.modules.get(prefix + found, object))]


def _alike(name: str, space: Mapping[str, Any]) -> list[str]:
    """Names of the module itself that look like one, or share a word with it."""
    known = [known for known in space if not known.startswith("_")]
    near = difflib.get_close_matches(name, known, n=4, cutoff=0.5)
    return near + [found for found in known_parts(name, known) if found not in near]


def known_parts(name: str, known: list[str]) -> list[str]:
    """Known names that share a word with a missing one."""
    words = [word for word in name.split("_") if len(word) > 3]
    return [candidate for candidate in known if any(word in candidate for word in words)]
