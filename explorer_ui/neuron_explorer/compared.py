"""The profiles that one is compared with, as an address names them: their ids with commas between."""

from __future__ import annotations

from neuron_explorer.page import View

BASE, COMPARE = "base", "compare"
"""Parameters of the address: profiles whose differences are listed, and those beside it on the timeline."""
FEW_OTHERS, MOST_OTHERS = 3, 16


def asked_profiles(view: View, parameter: str) -> list[str]:
    """Ids of the profiles that a parameter of the address names, in its order; none that is not there."""
    others = {entry.id for entry in view.library.entries()} - {view.address.profile}
    asked = dict.fromkeys(view.address.get(parameter).split(","))
    return [one for one in asked if one in others][:MOST_OTHERS]


def lacks_profiles(view: View, parameter: str) -> bool:
    """Whether a parameter of the address names profiles that this Explorer does not have."""
    known = {entry.id for entry in view.library.entries()}
    return not known.issuperset(filter(None, view.address.get(parameter).split(",")))


def other_profiles(view: View) -> list[str]:
    """Ids of the profiles to list differences to: those asked for, else all others where they are few."""
    others = [entry.id for entry in view.library.entries() if entry.id != view.address.profile]
    return asked_profiles(view, BASE) or (others if len(others) <= FEW_OTHERS else [])


def names_of(view: View, others: list[str]) -> dict[str, str]:
    """By the id of each, a name that tells it from the rest and from the view's own profile: with the folder
    that it lies in where several have the same.
    """
    entries = [view.library.entry(one) for one in (*others, view.address.profile)]
    names = [entry.name for entry in entries]
    return {
        entry.id: entry.name
        if names.count(entry.name) == 1
        else "/".join(entry.location.rstrip("/").rsplit("/", 2)[1:])
        for entry in entries[:-1]
    }
