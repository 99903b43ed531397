"""Modules under the names of AWS's packages, found by `import` only where the real ones are absent.

Each package here is one top-level name (`torch_neuronx`, `nki`, ...), and none is on the plain import path:
`import torch`, `neuron-profile capture`, `python -m neuron_tools` and `install()` make them importable,
behind everything that Python finds by itself, so an installed package of AWS's, or a module of the user's, is
always preferred.

Libraries ask whether `torch_xla` is there and, where it is, leave the `neuron` device: it answers to the
program's own import, and to libraries where the program imports it. `NEURON_TOOLS_TORCH_XLA` decides
otherwise: "1", always; "0", never.
"""

from __future__ import annotations

import importlib
import os
import re
import site
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # each Python that a capture starts imports this module
    from importlib.metadata import DistributionFinder

    from .distributions import CompatibleDistribution

FOLDER = Path(__file__).parent
PROBED = "torch_xla"
SWITCH = "NEURON_TOOLS_TORCH_XLA"
IMPORTING = ("importlib", "_frozen_importlib", "_frozen_importlib_external")
"""Python's own packages that ask finders for others."""
_VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)
TORCH_NEURON = ("DataParallel", "analyze_model", "trace")
"""What `torch_neuron` adds to `torch.neuron`."""


class CompatibleNames:
    """Finds the top-level packages of a folder; asked last, when no other finder knows the name."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a top-level package of ours; None for every other name."""
        if path is not None or "." in name or (name == PROBED and not _wants_probed()):
            return None
        folder = self._folder / name
        file = folder / "__init__.py"
        if not file.is_file():
            return None
        return spec_from_file_location(name, file, submodule_search_locations=[str(folder)])

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterator[CompatibleDistribution]:
        """The distribution of a package that has a version and is asked for by name."""
        name = re.sub(r"[-_.]+", "_", (context and context.name) or "").lower()
        file = self._folder / name / "__init__.py"
        if not name or not file.is_file() or (name == PROBED and not _wants_probed()):
            return
        if found := _VERSION.search(file.read_text(encoding="utf-8")):
            from .distributions import CompatibleDistribution

            yield CompatibleDistribution(name, found[1])


def _wants_probed() -> bool:
    switch = os.environ.get(SWITCH, "")
    if switch in ("0", "1"):
        return switch == "1"
    return not _is_library(sys._getframe(2)) or _program_imports(PROBED, sys.argv[0] if sys.argv else "")


@cache
def _program_imports(name: str, file: str) -> bool:
    """Whether a script has an import of a package in it, also one that has not run yet."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return re.search(rf"^\s*(?:import|from)\s+{name}\b", text, re.MULTILINE) is not None


def _is_library(frame: FrameType | None) -> bool:
    """Whether an installed library that is none for Neuron devices imports now, or asks."""
    while frame is not None and _top_level(frame) in IMPORTING:
        frame = frame.f_back
    if frame is None:
        return False
    file = frame.f_code.co_filename
    is_neurons = "neuron" in str(frame.f_globals.get("__name__", ""))
    return not is_neurons and file.startswith(tuple(_library_folders()))


def _top_level(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _library_folders() -> list[str]:
    """Where Python itself and installed packages are."""
    return [os.path.dirname(os.__file__), sys.prefix + os.sep + "lib", *site.getsitepackages()]


_finder = CompatibleNames()


def install() -> Callable[[], None]:
    """Make AWS's names importable in this process where the real packages are absent.

    Calling it again changes nothing.

    Returns:
        A function that takes the names away again; modules imported meanwhile stay.
    """
    from . import optimum_device
    from .runtime_library import offer

    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)
        optimum_device.wait()
    withdraw = offer()

    def uninstall() -> None:
        withdraw()
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)

    return uninstall


def python_path(environment: Mapping[str, str] = os.environ) -> str:
    """The `PYTHONPATH` with which each Python that is started has the names, also before it imports torch."""
    return os.pathsep.join([str(FOLDER / "startup"), *filter(None, [environment.get("PYTHONPATH")])])


def autoload() -> None:
    """The `torch.backends` entry point: makes the names importable when `import torch` ends.

    Libraries choose the device where they find a package of AWS's (`find_spec("torch_neuronx")`), so a script
    takes the same device captured or not. `NEURON_TOOLS_AWS_NAMES=0` leaves the names away.
    """
    if "torch.neuron" in sys.modules and os.environ.get("NEURON_TOOLS_AWS_NAMES") != "0":
        install()
        _offer(sys.modules["torch.neuron"])


def _offer(module: ModuleType) -> None:
    """Give `torch.neuron` what `torch_neuron` puts there: programs for Inferentia 1 may import it alone."""
    for name in TORCH_NEURON:
        if name not in vars(module):
            setattr(module, name, partial(_of_torch_neuron, name))


def _of_torch_neuron(name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(importlib.import_module("torch_neuron"), name)(*args, **kwargs)


def names() -> tuple[str, ...]:
    """The top-level names that `install` offers, sorted."""
    return tuple(sorted(file.parent.name for file in FOLDER.glob("*/__init__.py")))
