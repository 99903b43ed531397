"""Doors: where importers, exporters, rules, passes, analyses, pages and sinks are found, ours and others'.

A part is an entry point. Those in the tree are named where their door is made; any installed package adds its
own under the door's group in its `pyproject.toml`. Both are loaded alike, and only when they are used.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.extras import what_is_lacking
from neuron_tools.frozen import frozen

_LOG = logging.getLogger("neuron_tools")


class PartError(NeuronToolsError):
    """A part cannot be loaded, or there is none of that name."""


class UnknownPartError(PartError, UsageError):
    """There is no part of a name that was asked for."""


@frozen
class Door:
    """One kind of part.

    Attributes:
        group: Group of entry points by which other packages add parts, e.g. "neuron_tools.importers".
        noun: What a sentence calls a part, e.g. "importer".
        own: Name and place ("module:object") of each part in the tree, in the order in which they are used.

    Example:
        >>> RULES = Door("neuron_profile.rules", "advice rule", (("spill", "ours.rules.spill:find"),))
        >>> RULES.load("spill")
        <function find at 0x...>
    """

    group: str
    noun: str
    own: tuple[tuple[str, str], ...] = ()

    def names(self) -> tuple[str, ...]:
        """Names of all parts, ours first; nothing is loaded."""
        return tuple(self._entries())

    def load(self, name: str) -> Any:
        """A part.

        Raises:
            UnknownPartError: There is none of that name; the sentence has those that there are.
            PartError: It cannot be loaded; the sentence says why.
        """
        entry = self._entries().get(name)
        if entry is None:
            raise UnknownPartError(f"There is no {self.noun} {name!r}; there are: {', '.join(self.names())}.")
        try:
            return entry.load()
        except Exception as error:  # a part of another package may fail in any way
            raise PartError(self._refusal(entry, error)) from error

    def load_all(self) -> Iterator[tuple[str, Any]]:
        """Name and part of all that load; of each that does not, one sentence is logged as a warning."""
        for name in self.names():
            try:
                yield name, self.load(name)
            except PartError as error:
                _tell(str(error))

    def foreign(self) -> tuple[str, ...]:
        """What stands for the parts of other packages: name, place and version, for keys of caches."""
        ours = dict(self.own)
        entries = [entry for name, entry in self._entries().items() if name not in ours]
        return tuple(f"{entry.name} {entry.value} {_package(entry)}" for entry in entries)

    def _entries(self) -> dict[str, EntryPoint]:
        return _entries(self)

    def _refusal(self, entry: EntryPoint, error: Exception) -> str:
        lacking = what_is_lacking(error) if isinstance(error, ModuleNotFoundError) else None
        if lacking is not None:
            return f"The {self.noun} {entry.name!r} cannot be used, as {lacking}"
        owner, remedy = _package(entry), "install Neuron Tools again"
        if owner:
            owner, remedy = f" of {owner}", "update or remove that package"
        reason = f"{type(error).__name__}: {error}"
        return f"The {self.noun} {entry.name!r}{owner} cannot be loaded ({reason}): {remedy}."


@cache
def _entries(door: Door) -> dict[str, EntryPoint]:
    found = {name: EntryPoint(name, value, door.group) for name, value in door.own}
    for entry in sorted(entry_points(group=door.group), key=lambda entry: entry.name):
        if entry.name in found:
            taken = _package(found[entry.name]) or "Neuron Tools"
            _tell(
                f"{_package(entry)} adds the {door.noun} {entry.name!r}, which {taken} has: it is left out."
            )
        else:
            found[entry.name] = entry
    return found


def _package(entry: EntryPoint) -> str:
    """Name and version of the package that brings a part; "" for ours."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""


@cache
def _tell(sentence: str) -> None:
    """Log a sentence, once in a process."""
    _LOG.warning(sentence)
