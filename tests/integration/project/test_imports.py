"""The check of imports sees circles, packages that run on the way, and packages that an extra lacks."""

from scripts import check_imports
from scripts.check_imports import as_run, circles, installed, strangers


def graph(**imports):
    return {name.replace("__", "."): frozenset(targets.split()) for name, targets in imports.items()}


def test_a_circle_through_several_modules_is_found():
    assert circles(graph(a="b", b="c", c="b", d="a")) == [["b", "c"]]
    assert circles(graph(a="b c", b="c", c="")) == []


def test_importing_a_module_runs_the_packages_around_it():
    direct = graph(p="p.q", p__q="r.s", r="p.q", r__s="")
    assert circles(direct) == []
    assert circles(as_run(direct)) == [["p", "p.q", "r"]]


def test_ways_to_packages_that_an_extra_lacks_are_named(monkeypatch):
    monkeypatch.setattr(check_imports, "PACKAGES", {"small": ("neuron_monitor",)})
    imports = graph(neuron_monitor="neuron_tools.a json", neuron_tools__a="torch", json="")
    found = strangers(imports, "small", set())
    assert list(found) == ["neuron_monitor -> neuron_tools.a -> torch"]


def test_extras_install_what_they_name_and_include():
    project = {
        "name": "ours",
        "dependencies": ["click>=8.1"],
        "optional-dependencies": {"base": ["protobuf>=5"], "more": ["ours[base]", "dash-ag-grid>=31"]},
    }
    assert installed(project, "more") == {"click", "google", "dash_ag_grid"}
