"""Profiles that an address names, and what tells them apart."""

from pathlib import Path

import pytest

from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.compared import asked_profiles, names_of, other_profiles
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.page import View
from neuron_explorer.timeline import page


@pytest.fixture
def paths(make_profile, tmp_path: Path) -> list[Path]:
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
    return [make_profile(name) for name in ("before/run.nprof", "after/run.nprof", "other.nprof")]


def view_of(library: ProfileLibrary, path: Path, **parameters: str) -> View:
    address = Address("/timeline", profile_id(path), parameters=parameters)
    return View(library, Analyses(library), address)


def test_those_that_are_there_come_in_the_order_of_the_address(paths: list[Path]) -> None:
    with ProfileLibrary(paths) as library:
        own, second, third = map(profile_id, paths)
        view = view_of(library, paths[0], compare=f"{third},nobody,{own},{second},{third}")
        assert asked_profiles(view, "compare") == [third, second]


def test_a_few_other_profiles_need_not_be_named(paths: list[Path], make_profile) -> None:
    with ProfileLibrary(paths) as library:
        assert set(other_profiles(view_of(library, paths[0]))) == {profile_id(path) for path in paths[1:]}
    with ProfileLibrary([*paths, make_profile("fourth.nprof"), make_profile("fifth.nprof")]) as library:
        assert other_profiles(view_of(library, paths[0])) == []
        assert other_profiles(view_of(library, paths[0], base=profile_id(paths[2]))) == [profile_id(paths[2])]


def test_profiles_of_one_name_are_told_apart_by_their_folders(paths: list[Path]) -> None:
    with ProfileLibrary(paths) as library:
        others = [profile_id(path) for path in paths[1:]]
        assert list(names_of(view_of(library, paths[0]), others).values()) == [
            "after/run.nprof",
            "other.nprof",
        ]


def test_a_profile_that_is_not_there_is_told(paths: list[Path]) -> None:
    with ProfileLibrary(paths) as library:
        asked = f"{profile_id(paths[1])},nobody"
        drawn = page.timeline_page(view_of(library, paths[0], compare=asked, scope="all"))
        told, timeline = drawn.children
    assert told.children == page.MISSING
    assert [one["profile"] for one in timeline.compare] == [profile_id(paths[1])]


def test_each_stands_on_the_timeline_where_its_step_begins(paths: list[Path]) -> None:
    with ProfileLibrary(paths) as library:
        second, third = (profile_id(path) for path in paths[1:])
        drawn = page.timeline_page(view_of(library, paths[0], compare=f"{second},{third}", scope="all"))
        compared = drawn.children.compare
    assert [one["profile"] for one in compared] == [second, third]
    assert [one["name"] for one in compared] == ["after/run.nprof", "other.nprof"]
    assert [one["shift_ns"] for one in compared] == [None, None]  # the profiles have no steps
