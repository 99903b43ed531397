from __future__ import annotations

import os
from pathlib import Path

import pytest

from neuron_tools.device.driver import tree
from neuron_tools.device.driver.machine import FILE, Machine, read_machine
from neuron_tools.device.driver.processes import FOLDER


def test_devices_stand_whole_before_the_folder_of_processes_does(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[tuple[str, int]] = []
    rename = Path.rename

    def watched(self: Path, target: Path) -> Path:
        moved.append((target.name, sum(1 for _ in self.rglob("*"))))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)
    tree.make_tree(tmp_path, machine)
    names = [name for name, _ in moved]
    assert (names[0], names[-1]) == (FILE, FOLDER)
    devices = {size for name, size in moved if name.startswith("neuron")}
    assert len(devices) == 1
    assert devices.pop() > machine.cores_per_device
    assert os.listdir(tmp_path / "neuron0" / "neuron_core0")


def test_a_maker_that_is_killed_anywhere_leaves_what_the_next_one_makes_whole(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def killed_after(count: int) -> None:
        left = iter(range(count))

        def one(self: Path, target: Path) -> Path:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", one)

    for count in range(machine.device_count + 3):
        killed_after(count)
        with pytest.raises(KeyboardInterrupt):
            tree.make_tree(tmp_path, machine)
    monkeypatch.setattr(Path, "rename", rename)
    tree.make_tree(tmp_path, machine)
    assert read_machine(tmp_path) == machine
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".unused_core",
        FILE,
        *(f"neuron{device}" for device in range(machine.device_count)),
        FOLDER,
    ]
    tree.remove_tree(tmp_path)
    assert not tmp_path.exists()
