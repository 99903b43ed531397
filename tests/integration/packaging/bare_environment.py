"""A virtual environment that sees the built wheel and what one of its extras asks for, and nothing else.

What an extra asks for is read from the metadata of the wheel and of each distribution that it leads to, as
pip does; those distributions are linked from the environment of the tests. So a new environment costs a
second instead of minutes and gigabytes, and an import that only the full environment satisfies fails as it
does on a user's machine.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PathDistribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.integration.project.checkout import PACKAGE_FOLDERS, ROOT

OWN_NAME = "neuron-tools"
_SCRIPT = """\
#!{python}
import sys
from {module} import {function}

if __name__ == "__main__":
    sys.exit({function}())
"""


@cache
def installed_distributions() -> dict[str, Distribution]:
    """The distributions of the tests' own environment by canonical name."""
    return {canonicalize_name(each.metadata["Name"]): each for each in distributions()}


@cache
def owners() -> dict[str, frozenset[str]]:
    """Which distributions have files below each name in site-packages."""
    found: dict[str, set[str]] = {}
    for name, distribution in installed_distributions().items():
        for top in {file.parts[0] for file in distribution.files or ()}:
            found.setdefault(top, set()).add(name)
    return {top: frozenset(names) for top, names in found.items()}


def closure(own: Distribution, extra: str) -> set[str]:
    """Canonical names of all that an extra of a distribution asks for, directly or not."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    waiting = [(own, extra)]
    while waiting:
        distribution, wanted = waiting.pop()
        for requirement in _requirements(distribution, wanted):
            name = canonicalize_name(requirement.name)
            chosen = own if name == OWN_NAME else installed_distributions().get(name)
            if chosen is None:
                raise LookupError(
                    f"{name}, which {distribution.metadata['Name']}[{wanted}] needs, is not installed."
                )
            if name != OWN_NAME:
                found.add(name)
            for part in ("", *requirement.extras):
                if (name, part) not in seen:
                    seen.add((name, part))
                    waiting.append((chosen, part))
    return found


def _requirements(distribution: Distribution, extra: str) -> Iterator[Requirement]:
    for text in distribution.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


@dataclass(frozen=True, slots=True)
class BareEnvironment:
    """A virtual environment.

    Attributes:
        folder: Where it stands.
        packages: Canonical names of what is installed beside the wheel.
    """

    folder: Path
    packages: frozenset[str]

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def variables(self) -> dict[str, str]:
        """The environment's variables, as after `source bin/activate`; nothing leads back to the tests."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "NUMBA_CACHE"))
        }
        return {
            **kept,
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "VIRTUAL_ENV": str(self.folder),
            "OMP_NUM_THREADS": "1",
        }

    def run(self, *command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command that must succeed."""
        result = subprocess.run(
            command, cwd=cwd, env=self.variables(), capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}"
        return result


def make_environment(folder: Path, wheel: Path, extra: str) -> BareEnvironment:
    """Install a wheel with an extra into a new virtual environment, from what the tests' environment has."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (information,) = site.glob("neuron_tools-*.dist-info")
    own = PathDistribution(information)
    packages = closure(own, extra)
    for name in packages:
        _link(installed_distributions()[name], packages, site)
    environment = BareEnvironment(folder, frozenset(packages))
    _write_scripts(own, environment)
    if not (site / "neuron_tools/compiled_loops").is_dir():
        _take_compiled_loops(site)
    return environment


def _take_compiled_loops(site: Path) -> None:
    """Copy the machine code that the checkout keeps of the same functions: nothing is compiled once more."""
    for package in PACKAGE_FOLDERS:
        base = (ROOT / package).parent
        for kept in (ROOT / package).rglob("__pycache__/*.nb[ic]"):
            place = site / kept.relative_to(base)
            place.parent.mkdir(exist_ok=True)
            shutil.copyfile(kept, place)


def _link(distribution: Distribution, packages: set[str], site: Path) -> None:
    """Link a distribution's folders; folders that it shares with one that is not wanted, file by file."""
    source = Path(str(distribution.locate_file("")))
    for file in distribution.files or ():
        top = file.parts[0]
        if top in ("..", "__pycache__"):
            continue
        place = Path(top) if owners()[top] <= packages else Path(*file.parts)
        if not (site / place).exists():
            (site / place).parent.mkdir(parents=True, exist_ok=True)
            (site / place).symlink_to(source / place)


def _write_scripts(own: Distribution, environment: BareEnvironment) -> None:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names keep their case
    parser.read_string(own.read_text("entry_points.txt") or "")
    for name, target in parser["console_scripts"].items():
        match = re.fullmatch(r"([\w.]+):(\w+)", target)
        assert match is not None
        script = environment.folder / "bin" / name
        script.write_text(_SCRIPT.format(python=environment.python, module=match[1], function=match[2]))
        script.chmod(0o755)
