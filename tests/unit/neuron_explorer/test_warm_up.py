"""What the first page needs is there before somebody asks for it, and nothing is where it does not help."""

from pathlib import Path

from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.steps import opening_ns
from neuron_explorer.timeline.track_list import origin_ns
from neuron_explorer.warm_up import compile_loops, warmed_up
from neuron_tools.profile.timeline import drawing

PATIENCE_S = 120.0


def operations_kept(library: ProfileLibrary, path: Path) -> bool:
    return library.get(profile_id(path)).known(("charged operations", "framework")) is not None


def test_the_only_profile_is_read(make_profile) -> None:
    path = make_profile()
    with ProfileLibrary([path]) as library, warmed_up(library, Analyses(library)) as thread:
        thread.join(PATIENCE_S)
        assert operations_kept(library, path)


def test_what_the_timeline_opens_with_is_read(make_profile) -> None:
    path = make_profile()
    with ProfileLibrary([path]) as library:
        analyses = Analyses(library)
        with warmed_up(library, analyses) as thread:
            thread.join(PATIENCE_S)
        opening = opening_ns(Address(profile=profile_id(path)), analyses)
        profile = library.get(profile_id(path))
        origin = origin_ns(profile)
        held = profile.known("held ranges").around((0, 0), *(origin + end for end in opening))
        assert len(held) > 0


def test_of_several_none_is(make_profile) -> None:
    paths = [make_profile("one.nprof"), make_profile("two.nprof")]
    with ProfileLibrary(paths) as library, warmed_up(library, Analyses(library)) as thread:
        thread.join(PATIENCE_S)
        assert not any(operations_kept(library, path) for path in paths)


def test_a_damaged_profile_is_left_to_whoever_opens_it(make_profile) -> None:
    path = make_profile()
    (path / "catalog.json").write_text("{")
    with ProfileLibrary([path]) as library, warmed_up(library, Analyses(library)) as thread:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_loops_are_there_before_anything_is_drawn(monkeypatch) -> None:
    monkeypatch.setattr(drawing, "DRAW_KERNEL", drawing.DrawKernel())
    compile_loops()
    assert drawing.DRAW_KERNEL.ready() is not None


def test_who_leaves_at_once_waits_for_what_has_begun(make_profile) -> None:
    with ProfileLibrary([make_profile()]) as library:
        with warmed_up(library, Analyses(library)) as thread:
            pass
        assert not thread.is_alive()
