"""The source archive of the checkout and the wheel that is built from it, once for all tests of a process.

NEURON_TOOLS_WHEEL names a wheel that is tested instead, such as what `make dist` made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.packaging.bare_environment import BareEnvironment, make_environment
from tests.integration.project.checkout import ROOT, tracked_files

STATIC = Path("explorer_ui/neuron_explorer/timeline/static")
BUNDLES = (STATIC / "neuron_timeline.js", STATIC / "neuron_workspace.js")
WHEEL_VARIABLE = "NEURON_TOOLS_WHEEL"


def build(source: Path, target: Path, kind: str) -> Path:
    """Let the build back end make a `wheel` or an `sdist` of a folder, without the network."""
    target.mkdir(parents=True, exist_ok=True)
    code = f"from setuptools import build_meta as b; import sys; print(b.build_{kind}(sys.argv[1]))"
    result = subprocess.run([sys.executable, "-c", code, target], cwd=source, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return target / result.stdout.splitlines()[-1]


@pytest.fixture(scope="session")
def checkout_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project's files, with the timeline built: nothing is left in the checkout."""
    if not all((ROOT / bundle).is_file() for bundle in BUNDLES):
        pytest.skip("the timeline is not built: scripts/front_ends.sh timeline")
    copy = tmp_path_factory.mktemp("checkout")
    for path in (*tracked_files(), *(ROOT / bundle for bundle in BUNDLES)):
        place = copy / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    for bundle in BUNDLES:
        (copy / bundle).touch()  # newer than its sources, whatever was copied last
    return copy


@pytest.fixture(scope="session")
def source_archive(checkout_copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive."""
    return build(checkout_copy, tmp_path_factory.mktemp("sdist"), "sdist")


@pytest.fixture(scope="session")
def unpacked(source_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in the source archive."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(source_archive) as archive:
        archive.extractall(folder, filter="data") if sys.version_info >= (3, 12) else archive.extractall(
            folder
        )
    (inside,) = folder.iterdir()
    return inside


@pytest.fixture(scope="session")
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is named, else one built from the source archive alone."""
    if named := os.environ.get(WHEEL_VARIABLE):
        return Path(named).absolute()
    return build(request.getfixturevalue("unpacked"), tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], BareEnvironment]:
    """Gives the bare environment of an extra, made when it is first asked for."""
    made: dict[str, BareEnvironment] = {}

    def of_extra(extra: str) -> BareEnvironment:
        if extra not in made:
            made[extra] = make_environment(tmp_path_factory.mktemp(extra) / "venv", wheel, extra)
        return made[extra]

    return of_extra
