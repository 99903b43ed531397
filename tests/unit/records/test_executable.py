import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools import hardware
from neuron_tools.records.executable import (
    Executable,
    ExecutableError,
    load,
    of_another_module,
    save,
    save_shared,
)
from neuron_tools.simulator.simulation import simulate
from tests.unit.capture.programs import copy_and_scale


def make():
    program = copy_and_scale()
    return Executable(3, "aten::mul", "eager", program, simulate(program, hardware.get("trn2")), 1234)


def test_an_executable_is_read_back_as_it_was(tmp_path):
    written = make()
    save(written, tmp_path / "3.npz")
    read = load(tmp_path / "3.npz")
    assert (read.number, read.name, read.kind, read.compile_time_ns) == (3, "aten::mul", "eager", 1234)
    assert read.duration_ns == written.duration_ns
    for name in ("instructions", "waits", "dmas", "tiles"):
        assert np.array_equal(getattr(read.program, name), getattr(written.program, name))
    for name in ("framework", "hlo", "tensors", "queues", "activations"):
        assert getattr(read.program, name) == getattr(written.program, name)
    assert np.array_equal(read.simulation.start_ps, written.simulation.start_ps)


def test_a_duration_is_rounded_up_so_that_it_covers_every_row():
    executable = make()
    assert executable.duration_ns * 1000 >= executable.simulation.duration_ps
    assert (executable.duration_ns - 1) * 1000 < executable.simulation.duration_ps


def test_nothing_is_left_half_written(tmp_path):
    save(make(), tmp_path / "3.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["3.npz"]


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 not a zip"])
def test_a_damaged_file_is_one_sentence(tmp_path, damage):
    (tmp_path / "3.npz").write_bytes(damage)
    with pytest.raises(ExecutableError, match="cannot be read"):
        load(tmp_path / "3.npz")


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=4))
def test_a_file_damaged_anywhere_is_read_or_refused(place, damage):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "3.npz"
        path.write_bytes(whole_file())
        content = bytearray(path.read_bytes())
        at = int(place * len(content))
        content[at : at + len(damage)] = damage
        path.write_bytes(content)
        with suppress(ExecutableError):
            assert load(path).program.name == "copy_and_scale"


@cache
def whole_file():
    with tempfile.TemporaryDirectory() as folder:
        save(make(), Path(folder) / "3.npz")
        return (Path(folder) / "3.npz").read_bytes()


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(*arguments, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        save(make(), tmp_path / "3.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", [None, "second"])
def test_what_both_cores_of_a_logical_one_run_is_read_back(tmp_path, other):
    first = copy_and_scale()
    second = None if other is None else replace(first, name=other)
    program = replace(first, physical_cores=2, second=second)
    simulation = simulate(program, hardware.get("trn2", lnc=2))
    save(Executable(3, "graph", "graph", program, simulation), tmp_path / "3.npz")
    parts = load(tmp_path / "3.npz").of_cores
    assert [part.program.name for part in parts] == [first.name, other or first.name]
    for part, written in zip(parts, simulation.of_cores):
        assert np.array_equal(part.simulation.end_ps, written.end_ps)


def of_layer(number, executable):
    rows = tuple(replace(row, module_path=f"layers.{number}") for row in executable.program.framework)
    moved = of_another_module(executable, rows)
    assert moved is not None
    return replace(moved, number=number)


def test_a_module_that_runs_the_same_code_adds_its_own_rows_alone(tmp_path):
    first = make()
    save(first, tmp_path / "3.npz")
    save_shared(of_layer(4, first), tmp_path / "4.npz", tmp_path / "3.npz")
    read = load(tmp_path / "4.npz")
    assert (read.number, read.name, read.duration_ns) == (4, first.name, first.duration_ns)
    assert {row.module_path for row in read.program.framework} == {"layers.4"}
    assert np.array_equal(read.program.instructions, first.program.instructions)
    with np.load(tmp_path / "4.npz") as archive:
        assert archive.files == ["header"]


@pytest.mark.parametrize("code", ["absent.npz", "4.npz", "5.npz"])
def test_code_that_is_not_where_it_should_be_is_one_sentence(tmp_path, code):
    first = make()
    save_shared(of_layer(4, first), tmp_path / "4.npz", tmp_path / code)
    save_shared(of_layer(5, first), tmp_path / "5.npz", tmp_path / "4.npz")
    with pytest.raises(ExecutableError, match="cannot be read"):
        load(tmp_path / "4.npz")


def test_code_of_other_operations_is_refused(tmp_path):
    first = make()
    save(first, tmp_path / "3.npz")
    rows = tuple(replace(row, name="aten::other") for row in first.program.framework)
    other = replace(first, program=replace(first.program, framework=rows))
    save_shared(other, tmp_path / "4.npz", tmp_path / "3.npz")
    with pytest.raises(ExecutableError, match="holds other code"):
        load(tmp_path / "4.npz")
