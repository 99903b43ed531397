"""A profile stands under its name only when it is whole, and what stood there stays until then."""

import errno

import pytest

from neuron_tools.errors import UsageError
from neuron_tools.profile.importers import import_profile, import_traces
from neuron_tools.profile.placed_profile import placed_profile
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.store.layout import NotAProfileError
from neuron_tools.profile.writer import ProfileWriteError
from tests.unit.profile.importers.importing import written

WARNING = {"message": ["hot"], "category": ["thermal"]}
TRACE = {"traceEvents": [{"ph": "X", "name": "step", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]}


def warned(path):
    with open_profile(path) as profile:
        return profile.query("SELECT message FROM Warning").column(0).to_pylist()


def place(path, message="hot", *, force=False):
    with placed_profile(path, {"target": "trn2"}, force=force) as writer:
        writer.append("Warning", {**WARNING, "message": [message]})


def test_a_profile_appears_when_it_is_whole(tmp_path):
    target = tmp_path / "p.nprof"
    with placed_profile(target, {"target": "trn2"}, force=False) as writer:
        writer.append("Warning", WARNING)
        writer.flush()
        assert not target.exists()
    assert warned(target) == ["hot"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.nprof"]


def test_a_profile_is_replaced_only_with_force(tmp_path):
    place(tmp_path / "p.nprof")
    with pytest.raises(UsageError, match="--force"):
        place(tmp_path / "p.nprof", "other")
    place(tmp_path / "p.nprof", "other", force=True)
    assert warned(tmp_path / "p.nprof") == ["other"]


def test_what_is_no_profile_is_not_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("keep")
    with pytest.raises(NotAProfileError, match="is no profile, and --force replaces nothing else"):
        place(tmp_path, force=True)
    with pytest.raises(NotAProfileError):
        place(tmp_path / "thesis.txt", force=True)
    assert (tmp_path / "thesis.txt").read_text() == "keep"


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(UsageError, match="nowhere does not exist"):
        place(tmp_path / "nowhere" / "p.nprof")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("Error writing bytes to file. Detail: [errno 28] No space left on device"),
        ProfileWriteError("No space left on device"),
    ],
)
def test_a_full_disk_leaves_the_earlier_profile(tmp_path, error):
    target = tmp_path / "p.nprof"
    place(target)

    def fail():
        with placed_profile(target, {"target": "trn2"}, force=True) as writer:
            writer.append("Warning", {**WARNING, "message": ["half"]})
            raise error

    with pytest.raises(ProfileWriteError, match=f"{target} cannot be written \\(No space left on device\\)"):
        fail()
    assert warned(target) == ["hot"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.nprof"]


def test_an_import_that_cannot_be_written_leaves_the_earlier_profile(tmp_path, monkeypatch):
    target = tmp_path / "p.nprof"
    place(target)

    def derive(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(import_profile, "_derive", derive)
    with pytest.raises(ProfileWriteError, match=r"p\.nprof cannot be written \(No space left on device\)"):
        import_traces([written(tmp_path, "trace.json", TRACE)], target, force=True)
    assert warned(target) == ["hot"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["p.nprof", "trace.json"]
