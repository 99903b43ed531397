from __future__ import annotations

import os
import threading
from pathlib import Path

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


def test_a_lock_whose_file_was_removed_is_no_lock(root: Path) -> None:
    order = []

    def second() -> None:
        with locked(root):
            order.append("second")

    with locked(root):
        thread = threading.Thread(target=second)
        thread.start()
        (root / ".lock").unlink()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert (root / ".lock").exists()
