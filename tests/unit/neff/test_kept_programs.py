from dataclasses import replace

import numpy as np
import pytest

from neuron_tools.errors import NeuronToolsError
from neuron_tools.neff.kept_programs import FOLDER, keep_programs, load_program
from tests.unit.capture.programs import fused_executable


def of_layer(executable, number):
    rows = tuple(replace(row, module_path=f"layers.{number}") for row in executable.program.framework)
    return replace(executable, number=number, program=replace(executable.program, framework=rows))


@pytest.fixture
def layers(tmp_path):
    """Three modules that run one code."""
    first = fused_executable()
    layers = [of_layer(first, number) for number in (1, 2, 3)]
    keep_programs(tmp_path, 0, layers)
    return layers


def test_each_module_has_its_program_and_the_code_is_kept_once(tmp_path, layers):
    assert [path.name for path in tmp_path.rglob("*.neff")] == ["0-000001.neff"]
    for layer in layers:
        program = load_program(tmp_path, 0, layer.number)
        assert program.framework == layer.program.framework
        np.testing.assert_array_equal(program.instructions, layer.program.instructions)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"code": 7, "framework": []}', b'{"code": "x"}'])
def test_damaged_rows_are_one_sentence(tmp_path, layers, damage):
    (tmp_path / FOLDER / "0-000002.json").write_bytes(damage)
    with pytest.raises(NeuronToolsError, match="cannot be read"):
        load_program(tmp_path, 0, 2)


def test_rows_of_other_operations_are_refused(tmp_path, layers):
    (tmp_path / FOLDER / "0-000002.json").write_bytes(b'{"code": 1, "framework": []}')
    with pytest.raises(NeuronToolsError, match="does not belong to"):
        load_program(tmp_path, 0, 2)
