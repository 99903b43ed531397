"""Moves what numba compiled into the folder of a wheel: python scripts/keep_loops.py CACHE FOLDER

numba names the folders of its cache after the paths of the sources; in the wheel they are named after the
modules, which are the same wherever it is installed. Modules that compile when they are defined are imported
first.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator

PACKAGES = ("neuron_tools", "neuron_profile", "neuron_explorer")


def modules() -> dict[str, Path]:
    """File of each module of ours whose source uses `neuron_tools.compiled`, by name."""
    found = {}
    for package in PACKAGES:
        folder = Path(str(importlib.import_module(package).__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            if "neuron_tools.compiled import" in path.read_text():
                found[".".join((package, *path.relative_to(folder).with_suffix("").parts))] = path
    return found


def keep(cache: Path, folder: Path) -> int:
    """Copy the code of each module; returns how many files."""
    count = 0
    for name, path in modules().items():
        importlib.import_module(name)
        compiled = cache / UserProvidedCacheLocator.get_suitable_cache_subpath(str(path))
        for file in sorted(compiled.glob(f"{path.stem}.*.nb[ic]")):
            (folder / name).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / name / file.name)
            count += 1
    return count


if __name__ == "__main__":
    print(keep(Path(sys.argv[1]), Path(sys.argv[2])), "files of compiled loops")
