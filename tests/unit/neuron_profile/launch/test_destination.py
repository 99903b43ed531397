import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from neuron_profile.launch.destination import DestinationError, default_name, find_destination
from neuron_tools.errors import UsageError


def test_the_name_is_the_scripts_or_the_programs() -> None:
    assert default_name(["python", "a/train.py"], Path("a/train.py")) == "train"
    assert default_name(["/usr/bin/env"], None) == "env"


def test_names_are_counted_up_and_nothing_is_overwritten(tmp_path: Path) -> None:
    found = []
    for _ in range(3):
        directory = find_destination(None, "train", tmp_path)
        found.append(directory.name)
        assert not directory.exists()
        directory.mkdir()
    assert found == ["train.nprof", "train-2.nprof", "train-3.nprof"]


def test_a_dangling_link_counts_as_existing(tmp_path: Path) -> None:
    (tmp_path / "train.nprof").symlink_to(tmp_path / "gone")
    assert find_destination(None, "train", tmp_path).name == "train-2.nprof"


def test_an_asked_folder_that_exists_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists: choose another with -o"):
        find_destination(tmp_path, "train", tmp_path)


def test_missing_parents_are_no_obstacle_and_nothing_is_left_behind(tmp_path: Path) -> None:
    asked = tmp_path / "a" / "b" / "run.nprof"
    assert find_destination(asked, "train", tmp_path) == asked
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DestinationError, match=r"cannot be made \(not a directory\)"):
        find_destination(tmp_path / "file" / "run.nprof", "train", tmp_path)


def test_a_full_disk_is_noticed_before_the_command_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=2, f_frsize=2**20))
    with pytest.raises(DestinationError, match=r"is full \(2 MiB free, a capture needs at least 32 MiB\)"):
        find_destination(None, "train", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DestinationError, match=r"cannot be made \(permission denied\)"):
        find_destination(None, "train", tmp_path)
