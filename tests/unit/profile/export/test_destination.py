import errno
import os

import pytest

from neuron_tools.errors import UsageError
from neuron_tools.profile.export.destination import new_file, new_folder
from neuron_tools.profile.export.report import ExportError


def use(destination, action):
    with destination as opened:
        action(opened)


def break_off(destination, action):
    with destination as opened:
        action(opened)
        raise ValueError("broken")


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "out.json"
    with new_file(path, force=False) as stream:
        stream.write(b"abc")
        assert not path.exists()

    assert path.read_bytes() == b"abc"
    assert os.listdir(tmp_path) == ["out.json"]


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="broken"):
        break_off(new_file(tmp_path / "out", force=False), lambda stream: stream.write(b"half"))

    assert os.listdir(tmp_path) == []


def test_a_failure_keeps_what_was_there(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(ValueError, match="broken"), new_file(path, force=True):
        raise ValueError("broken")

    assert path.read_text() == "old"


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path):
    with pytest.raises(ExportError, match="No space left on device"), new_file(tmp_path / "o", force=False):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's /dev/full")
def test_the_last_flush_also_counts(tmp_path):
    """A small file fits the buffer: the disk is found full only when it is flushed."""

    def fill_the_disk(stream):
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, stream.fileno())
        os.close(full)
        stream.write(b"x")

    with pytest.raises(ExportError, match="No space left"):
        use(new_file(tmp_path / "o", force=False), fill_the_disk)

    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_refused_unless_forced(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(UsageError, match="--force"), new_file(path, force=False):
        pytest.fail("must not start")
    with new_file(path, force=True) as stream:
        stream.write(b"new")

    assert path.read_text() == "new"


def test_a_missing_folder_is_named(tmp_path):
    with (
        pytest.raises(UsageError, match="does not exist; make it first"),
        new_file(tmp_path / "no" / "out", force=False),
    ):
        pytest.fail("must not start")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UsageError, match="is a folder"), new_file(tmp_path, force=True):
        pytest.fail("must not start")


def test_a_folder_appears_whole_and_replaces_only_when_forced(tmp_path):
    path = tmp_path / "out"
    with new_folder(path, force=False) as folder:
        (folder / "a").write_text("1")
        assert not path.exists()
    with pytest.raises(UsageError, match="exists"), new_folder(path, force=False):
        pytest.fail("must not start")
    with new_folder(path, force=True) as folder:
        (folder / "b").write_text("2")

    assert os.listdir(path) == ["b"]
    assert os.listdir(tmp_path) == ["out"]


def test_a_failure_keeps_the_folder_that_was_there(tmp_path):
    path = tmp_path / "out"
    path.mkdir()
    (path / "old").write_text("1")
    with pytest.raises(ValueError, match="broken"):
        break_off(new_folder(path, force=True), lambda folder: (folder / "new").write_text("2"))

    assert os.listdir(path) == ["old"]
    assert os.listdir(tmp_path) == ["out"]


def test_exports_are_as_readable_as_other_files(tmp_path):
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("")
    with new_file(tmp_path / "out", force=False):
        pass

    assert (tmp_path / "out").stat().st_mode == ordinary.stat().st_mode
