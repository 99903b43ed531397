"""What the first page needs is there before somebody asks for it, and nothing is where it does not help."""

from pathlib import Path

from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.warm_up import warmed_up

PATIENCE_S = 120.0


def operations_kept(library: ProfileLibrary, path: Path) -> bool:
    return library.get(profile_id(path)).known(("charged operations", "framework")) is not None


def test_the_only_profile_is_read(make_profile) -> None:
    path = make_profile()
    with ProfileLibrary([path]) as library, warmed_up(library) as thread:
        thread.join(PATIENCE_S)
        assert operations_kept(library, path)


def test_of_several_none_is(make_profile) -> None:
    paths = [make_profile("one.nprof"), make_profile("two.nprof")]
    with ProfileLibrary(paths) as library, warmed_up(library) as thread:
        thread.join(PATIENCE_S)
        assert not any(operations_kept(library, path) for path in paths)


def test_a_damaged_profile_is_left_to_whoever_opens_it(make_profile) -> None:
    path = make_profile()
    (path / "catalog.json").write_text("{")
    with ProfileLibrary([path]) as library, warmed_up(library) as thread:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_who_leaves_at_once_waits_for_what_has_begun(make_profile) -> None:
    with ProfileLibrary([make_profile()]) as library:
        with warmed_up(library) as thread:
            pass
        assert not thread.is_alive()
