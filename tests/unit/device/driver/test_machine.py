from __future__ import annotations

from pathlib import Path

import pytest

from neuron_tools import hardware
from neuron_tools.device.driver.machine import FILE, Machine, read_machine, serial_number, simulated_machine


@pytest.mark.parametrize("target", hardware.targets())
def test_every_target_has_a_machine_whose_neighbours_agree(target: str) -> None:
    machine = simulated_machine(target)
    assert machine.device_count == len(machine.connected)
    for device, others in enumerate(machine.connected):
        assert all(device in machine.connected[other] for other in others)


def test_a_torus_has_four_neighbours() -> None:
    assert simulated_machine("trn2.48xlarge").connected[0] == (1, 3, 4, 12)


def test_a_machine_survives_its_file(tmp_path: Path, machine: Machine) -> None:
    (tmp_path / FILE).write_text(machine.as_text())
    assert read_machine(tmp_path) == machine
    assert machine.place(5) == (1, 1)


def test_no_file_is_no_tree_and_a_foreign_one_is_refused(tmp_path: Path) -> None:
    assert read_machine(tmp_path) is None
    (tmp_path / FILE).write_text('{"format": 99}')
    with pytest.raises(ValueError, match="not of this version"):
        read_machine(tmp_path)


def test_serial_numbers_are_16_digits_and_differ() -> None:
    numbers = [serial_number(device) for device in range(16)]
    assert len(set(numbers)) == 16
    assert all(len(number) == 16 and int(number, 16) >= 0 for number in numbers)
    assert numbers[0] == serial_number(0)
