"""Fails where imports run in a circle, or lead from a tool to packages that its extra does not install.

`python scripts/check_imports.py`. Imports inside functions and for types count; for circles also that
importing `a.b.c` runs `a` and `a.b`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grimp

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).resolve().parent.parent
ROOTS = ("neuron_tools", "neuron_profile", "neuron_explorer", "neuron_monitor")
PACKAGES = {  # what must run where only this extra is installed
    "profile": (
        "neuron_profile.analysis",
        "neuron_profile.reports",
        "neuron_tools.profile",
        "neuron_tools.records",
    ),
    "explorer": ("neuron_explorer",),
    "monitor": ("neuron_monitor",),
    "sign-in": ("neuron_explorer.sign_in",),
}
IMPORTED_AS = {"protobuf": ("google",), "dash": ("dash", "flask", "werkzeug")}
"""What a distribution brings, where its name does not tell."""
OPTIONAL = {
    "fsspec": "profiles behind URLs; the error names the extra",
    "distributed": "analyses of many ranks on a cluster; the error names the extra",
    "authlib": "signing users in; the error names the extra",
    "joserfc": "comes with authlib",
    "requests": "comes with the extra of authlib",
    "tomli": "stands for tomllib where Python has none",
    "typing_extensions": "for type checkers only; nothing imports it at run time",
    "pyarrow": "the monitor's recording as a profile; the error names the extra",
}

Graph = Mapping[str, frozenset[str]]


def import_graph() -> Graph:
    """Who imports whom: our modules and the packages of others."""
    found = grimp.build_graph(*ROOTS, include_external_packages=True, cache_dir=None)
    return {name: frozenset(found.find_modules_directly_imported_by(name)) for name in found.modules}


def as_run(graph: Graph) -> Graph:
    """The graph with the packages that importing a module runs besides."""
    return {name: frozenset(with_parents(name, imported, graph)) for name, imported in graph.items()}


def with_parents(importer: str, imported: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """What is imported, and the packages around it that importing it runs; not those around the importer."""
    for name in imported:
        yield name
        parts = name.split(".")
        for count in range(1, len(parts)):
            package = ".".join(parts[:count])
            if package in names and not f"{importer}.".startswith(f"{package}."):
                yield package


def circles(graph: Graph) -> list[list[str]]:
    """The groups of modules that reach one another (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    found: list[list[str]] = []
    for start in sorted(graph):
        if start in number:
            continue
        number[start] = lowest[start] = len(number)
        open_.append(start)
        path = [(start, iter(sorted(graph[start])))]
        while path:
            name, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[name])
                if lowest[name] == number[name]:
                    group = open_[open_.index(name) :]
                    del open_[-len(group) :]
                    if len(group) > 1:
                        found.append(sorted(group))
            elif following not in number:
                number[following] = lowest[following] = len(number)
                open_.append(following)
                path.append((following, iter(sorted(graph.get(following, ())))))
            elif following in open_:
                lowest[name] = min(lowest[name], number[following])
    return found


def installed(project: Mapping[str, Any], extra: str) -> set[str]:
    """Names under which what an extra installs is imported."""
    found: set[str] = set()
    for requirement in (*project["dependencies"], *project["optional-dependencies"][extra]):
        name, _, extras = re.split(r"[ <>=~;]", requirement)[0].rstrip("]").partition("[")
        if name == project["name"]:
            found.update(*(installed(project, inner) for inner in extras.split(",")))
        else:
            found.update(IMPORTED_AS.get(name, (name.replace("-", "_"),)))
    return found


def strangers(graph: Graph, extra: str, known: set[str]) -> Iterator[str]:
    """Ways from an extra's packages to packages that it does not install."""
    starts = [name for name in graph if f"{name}.".startswith(tuple(f"{p}." for p in PACKAGES[extra]))]
    before: dict[str, str | None] = dict.fromkeys(starts)
    queue = list(starts)
    while queue:
        name = queue.pop()
        for following in graph.get(name, ()):
            if following not in before:
                before[following] = name
                queue.append(following)
    for name in sorted(before):
        allowed = name in known or name in OPTIONAL or name in sys.stdlib_module_names
        if not allowed and name.split(".")[0] not in ROOTS:
            way = [name]
            while (previous := before[way[-1]]) is not None:
                way.append(previous)
            yield " -> ".join(reversed(way))


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    sys.path[:0] = [str(PROJECT / folder) for folder in (".", "profiler", "explorer_ui", "monitor")]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    graph = import_graph()
    faults = [f"imports run in a circle: {', '.join(group)}" for group in circles(as_run(graph))]
    for extra in PACKAGES:
        ways = strangers(graph, extra, installed(project, extra))
        faults += [f"the extra {extra!r} does not install the end of {way}" for way in ways]
    print("\n".join(faults) or f"{len(graph)} modules, no circle")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
