from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import IO

import pytest

from neuron_tools.device.driver.root import locked, root_folder


def test_the_variable_names_the_folder_and_an_empty_one_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_SYSFS_ROOT", "/some/where")
    assert root_folder() == Path("/some/where")
    monkeypatch.setenv("NEURON_SYSFS_ROOT", "")
    assert root_folder() is None
    monkeypatch.delenv("NEURON_SYSFS_ROOT")
    default = root_folder()
    assert default is not None
    assert default.name == f"neuron-sysfs-{os.getuid()}"


def test_a_lock_whose_file_was_removed_is_no_lock(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order, has_opened = [], threading.Event()
    flock = fcntl.flock

    def second() -> None:
        with locked(root):
            order.append("second" if (root / ".lock").exists() else "second, without its file")

    def tell_and_lock(file: IO[str], operation: int) -> None:
        has_opened.set()
        flock(file, operation)

    with locked(root):
        monkeypatch.setattr(fcntl, "flock", tell_and_lock)
        thread = threading.Thread(target=second)
        thread.start()
        assert has_opened.wait(60)
        order.append("first")
        (root / ".lock").unlink()
    thread.join()
    assert order == ["first", "second"]
