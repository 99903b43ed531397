import json
import os
from pathlib import Path

import pytest

from neuron_explorer.library import ProfileLibrary, UnknownProfileError, is_profile, profile_id
from neuron_tools.profile.reader import NotAProfileError
from neuron_tools.profile.writer import ProfileWriter


def test_an_id_depends_on_the_absolute_path_only(make_profile, monkeypatch, tmp_path: Path) -> None:
    path = make_profile()
    monkeypatch.chdir(tmp_path)
    assert profile_id(path.name) == profile_id(path) == profile_id(path / ".." / path.name)
    assert profile_id(path) != profile_id(tmp_path / "other.nprof")


def test_a_profile_is_opened_once(make_profile) -> None:
    with ProfileLibrary([make_profile()]) as library:
        (entry,) = library.entries()
        assert entry.name == "tiny.nprof"
        assert library.get(entry.id) is library.get(entry.id)


def test_a_folder_gives_the_profiles_in_it_also_later_ones(make_profile, tmp_path: Path) -> None:
    with ProfileLibrary([tmp_path]) as library:
        assert library.entries() == ()
        make_profile("b/two.nprof")
        make_profile("one.nprof")
        assert [entry.name for entry in library.entries()] == ["two.nprof", "one.nprof"]
        assert all(entry.folder == str(tmp_path) for entry in library.entries())


def test_what_is_not_in_the_library_cannot_be_named(make_profile, tmp_path: Path) -> None:
    outside = make_profile("outside.nprof")
    inside = make_profile("inside/a.nprof")
    (tmp_path / "inside" / "link.nprof").symlink_to(outside)
    with ProfileLibrary([inside.parent]) as library:
        assert [entry.name for entry in library.entries()] == ["a.nprof"]
        for wanted in (profile_id(outside), str(outside), "../outside.nprof", "", "\0"):
            with pytest.raises(UnknownProfileError):
                library.get(wanted)


def test_a_moved_profile_is_unknown(make_profile, tmp_path: Path) -> None:
    path = make_profile("a/one.nprof")
    with ProfileLibrary([path.parent]) as library:
        library.get(profile_id(path))
        path.rename(tmp_path / "elsewhere.nprof")
        with pytest.raises(UnknownProfileError, match="moved or deleted"):
            library.get(profile_id(path))


def test_a_profile_that_goes_on_is_opened_again(make_profile) -> None:
    path = make_profile()
    with ProfileLibrary([path]) as library:
        first = library.get(profile_id(path))
        manifest = path / "profile.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "target": "trn1", "x": "y" * 99}))
        second = library.get(profile_id(path))
        assert (second is first, second.metadata["target"]) == (False, "trn1")
        assert first.query("SELECT 1 AS one").num_rows == 1


def test_a_dropped_profile_is_forgotten(make_profile) -> None:
    path = make_profile()
    with ProfileLibrary([path]) as library:
        library.get(profile_id(path))
        library.drop(profile_id(path))
        assert library.entries() == ()


def test_a_folder_of_published_tables_is_a_profile(tmp_path: Path) -> None:
    folder = tmp_path / "aws"
    folder.mkdir()
    assert not is_profile(folder)
    (folder / "Instruction.parquet").write_bytes(b"")
    assert is_profile(folder)


@pytest.mark.parametrize("name", ["missing", "file.json"])
def test_what_is_no_profile_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.json").write_text("{}")
    with pytest.raises(NotAProfileError):
        ProfileLibrary([tmp_path / name])


def test_an_unreadable_folder_is_empty(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    library = ProfileLibrary([folder])
    os.rmdir(folder)
    assert library.entries() == ()


def test_a_growing_profile_is_read_anew_though_its_manifest_stays(tmp_path, tiny_tables, monkeypatch) -> None:
    monkeypatch.setattr("neuron_explorer.library.GROWTH_S", 0.0)
    path = tmp_path / "growing.nprof"
    rows = dict(tiny_tables["Instruction"])
    with ProfileWriter(path, {"target": "trn2"}) as writer, ProfileLibrary() as library:
        writer.append("Instruction", rows)
        writer.flush()
        wanted = library.add(path)
        assert wanted is not None
        first = library.get(wanted)
        assert (first.complete, first.tables()["Instruction"]) == (False, len(rows["id"]))
        writer.append("Instruction", {**rows, "id": [number + 1000 for number in rows["id"]]})
        writer.flush()
        assert library.get(wanted).tables()["Instruction"] == 2 * len(rows["id"])
