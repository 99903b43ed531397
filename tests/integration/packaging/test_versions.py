"""One version for everything that is released together; `scripts/set_version.py` writes it everywhere."""

import json
import re
import runpy

import pytest

from tests.integration.project.checkout import ROOT

PACKAGES = ("", "explorer_ui/timeline", "vscode-extension")
SCRIPT = runpy.run_path(str(ROOT / "scripts/set_version.py"))


def version():
    return re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]


def package(folder):
    return json.loads((ROOT / folder / "package.json").read_text())


@pytest.mark.parametrize("folder", PACKAGES)
def test_what_is_written_in_typescript_has_the_distributions_version(folder):
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"][folder]
    assert package(folder)["version"] == locked["version"] == version()


def test_no_module_repeats_the_version():
    modules = [*ROOT.glob("neuron_*/**/*.py"), *ROOT.glob("*/neuron_*/**/*.py")]
    assert modules
    assert not [path for path in modules if f'__version__ = "{version()}"' in path.read_text()]


def test_a_new_version_is_written_everywhere(tmp_path):
    for name in SCRIPT["PLACES"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    SCRIPT["set_version"](tmp_path, version(), "12.3.4")
    for name in SCRIPT["PLACES"]:
        before, after = (ROOT / name).read_text(), (tmp_path / name).read_text()
        changed = [(a, b) for a, b in zip(before.splitlines(), after.splitlines()) if a != b]
        assert changed
        assert all("version" in a or "@neuron-tools" in a for a, _ in changed)
    lock = json.loads((tmp_path / "package-lock.json").read_text())["packages"]
    assert {lock[folder]["version"] for folder in PACKAGES} == {"12.3.4"}


def test_the_extension_says_where_it_comes_from():
    fields = package("vscode-extension")
    assert {"repository", "bugs", "homepage", "galleryBanner", "license", "icon"} <= set(fields)
    assert (ROOT / "vscode-extension/LICENSE").is_file()
    assert f"## {version()}" in (ROOT / "vscode-extension/CHANGELOG.md").read_text()
    assert "--allow-missing-repository" not in fields["scripts"]["package"]
