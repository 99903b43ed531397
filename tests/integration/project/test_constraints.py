from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.integration.project.checkout import ROOT

LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def environment(python):
    return {
        "python_version": python,
        "python_full_version": f"{python}.5",
        "sys_platform": "linux",
        "extra": "",
    }


def pins(python):
    """Exact version by package for one Python on Linux."""
    requirements = map(Requirement, LINES)
    chosen = [r for r in requirements if r.marker is None or r.marker.evaluate(environment(python))]
    names = [canonicalize_name(requirement.name) for requirement in chosen]
    assert len(names) == len(set(names))
    return {name: str(requirement.specifier).removeprefix("==") for name, requirement in zip(names, chosen)}


def dependencies(python):
    """What the distribution asks for on one Python in any of its extras."""
    extras = ["", *metadata.metadata("neuron-tools").get_all("Provides-Extra")]
    places = [{**environment(python), "extra": extra} for extra in extras]
    requirements = [Requirement(text) for text in metadata.requires("neuron-tools")]
    asked = [r for r in requirements if r.marker is None or any(map(r.marker.evaluate, places))]
    return [requirement for requirement in asked if requirement.name != "neuron-tools"]


@pytest.mark.parametrize("line", LINES)
def test_each_line_is_one_public_version(line):
    requirement = Requirement(line)
    (specifier,) = requirement.specifier
    assert specifier.operator == "=="
    assert "*" not in specifier.version
    assert "+" not in specifier.version
    assert requirement.url is None


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_is_pinned_to_a_version_it_allows(python):
    pinned = pins(python)
    for dependency in dependencies(python):
        assert dependency.specifier.contains(pinned[canonicalize_name(dependency.name)]), dependency


@pytest.mark.parametrize("python", PYTHONS)
def test_a_pin_supports_the_python_that_it_is_for(python):
    pinned = pins(python)
    for installed in metadata.distributions():
        asked = installed.metadata.get("Requires-Python")
        if asked and pinned.get(canonicalize_name(installed.metadata["Name"])) == installed.version:
            assert SpecifierSet(asked).contains(f"{python}.5"), installed.metadata["Name"]


def test_the_bootstrap_installs_the_pinned_torch():
    assert f"TORCH=torch=={pins('3.12')['torch']}\n" in (ROOT / "scripts/bootstrap.sh").read_text()
