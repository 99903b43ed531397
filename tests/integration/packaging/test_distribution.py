"""What is in the wheel and in the source archive: all that is needed, and nothing else."""

import email
import re
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.packaging.conftest import BUNDLES
from tests.integration.project.checkout import PACKAGE_FOLDERS, ROOT, tracked_files

IMPORT_NAMES = [Path(folder).name for folder in PACKAGE_FOLDERS]
DATA_SUFFIXES = {".json", ".csv", ".cpp", ".h", ".html", ".css", ".js", ".mjs", ".tcss"}
LEFT_OUT = {".gitattributes"}


@pytest.fixture(scope="module")
def in_wheel(wheel):
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def in_archive(source_archive):
    with tarfile.open(source_archive) as archive:
        files = [PurePosixPath(member.name) for member in archive.getmembers() if member.isfile()]
    return {str(path.relative_to(path.parts[0])) for path in files}


def test_the_wheel_has_every_module_and_data_file(in_wheel):
    for folder in PACKAGE_FOLDERS:
        base = (ROOT / folder).parent
        files = [path for path in tracked_files() if path.is_relative_to(ROOT / folder)]
        wanted = [path for path in files if path.suffix in DATA_SUFFIXES | {".py"} or path.name == "py.typed"]
        assert not {str(path.relative_to(base)) for path in wanted} - in_wheel


def test_the_wheel_has_the_built_timeline(in_wheel):
    assert {str(bundle.relative_to("explorer_ui")) for bundle in BUNDLES} <= in_wheel


def test_the_wheel_has_nothing_else(in_wheel):
    tops = {name.split("/")[0] for name in in_wheel if ".dist-info" not in name}
    assert tops == set(IMPORT_NAMES)
    assert not [name for name in in_wheel if name.endswith((".pyc", ".nbi", ".nbc", ".ts"))]
    libraries = {name for name in in_wheel if name.endswith(".so")}
    assert libraries <= {"neuron_monitor/api/_kernels.abi3.so"}


def test_the_source_archive_has_all_that_git_tracks(in_archive):
    tracked = {str(path.relative_to(ROOT)) for path in tracked_files()} - LEFT_OUT
    assert not tracked - in_archive


def test_the_source_archive_has_nothing_else_but_what_lets_it_build_offline(in_archive):
    tracked = {str(path.relative_to(ROOT)) for path in tracked_files()}
    made = {name for name in in_archive - tracked if ".egg-info/" not in name}
    assert made == {"PKG-INFO", "setup.cfg", *map(str, BUNDLES)}


def test_the_readme_on_a_package_index_has_links_that_resolve(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        described = email.message_from_bytes(archive.read(name))
    (repository,) = (url for url in described.get_all("Project-URL") if url.startswith("Repository, "))
    version_at = f"{repository.removeprefix('Repository, ')}/(?:blob|raw)/v{described['Version']}"
    targets = re.findall(r"\]\(([^)]*)\)", described.get_payload())
    files = [re.fullmatch(rf"{version_at}/([^#]*)(?:#.*)?", target) for target in targets]
    assert described["Description-Content-Type"] == "text/markdown"
    assert len([file for file in files if file and (ROOT / file[1]).is_file()]) == len(targets) > 20
