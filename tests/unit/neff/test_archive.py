"""Archives give back what was put in; anything else is refused in one sentence."""

import gzip
import os
import zipfile
from dataclasses import fields

import numpy as np
import pytest

from neuron_tools.neff import Neff, NeffError, files, read_neff, write_neff
from tests.unit.neff import computation
from tests.unit.neff.computation import artifact


@pytest.fixture(scope="module")
def neff():
    return artifact()


def assert_same_program(first, second):
    for field in fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        else:
            assert one == other


def test_an_archive_gives_back_what_was_put_in(neff, tmp_path):
    write_neff(neff, tmp_path / "model.neff")
    found = read_neff(tmp_path / "model.neff")
    assert_same_program(found.program, neff.program)
    assert (found.stablehlo, found.options, found.attachments) == (
        neff.stablehlo,
        neff.options,
        neff.attachments,
    )
    assert found.sources == {computation.__file__: {1: computation.FIRST_LINE}}


def test_the_same_computation_gives_the_same_bytes(neff):
    assert neff.to_bytes() == Neff.from_bytes(neff.to_bytes()).to_bytes()


def test_the_manifest_names_the_tensors_and_counts(neff):
    manifest = neff.manifest
    assert [tensor["name"] for tensor in manifest["weights"]] == ["head.weight"]
    assert manifest["inputs"] == [{"name": "x", "dtype": "f32", "shape": [64, 64]}]
    assert manifest["model_flops"] == 2 * 64**3
    assert sum(manifest["instructions"].values()) == len(neff.program.instructions)
    assert manifest["source_files"] == [computation.__file__]


def cut_off(data):
    return data[: len(data) // 2]


def scrambled(data):
    middle = data.index(b"instructions.npy") + 200
    return data[:middle] + bytes(255 - byte for byte in data[middle : middle + 64]) + data[middle + 64 :]


def from_the_future(data, tmp_path):
    path = tmp_path / "future.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("manifest.json", '{"format": "neuron-tools-neff", "version": 99}')
    return path.read_bytes()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data, _: b"", "another kind of file"),
        (lambda data, _: b"\x7fELF and so on", "another kind of file"),
        (lambda data, _: cut_off(data), "damaged"),
        (lambda data, _: scrambled(data), "damaged"),
        (lambda data, _: b"\0" * 1024 + gzip.compress(b"tar"), "AWS's compiler"),
        (from_the_future, "update Neuron Tools"),
    ],
)
def test_other_files_are_refused_in_one_sentence(neff, damage, says, tmp_path):
    path = tmp_path / "model.neff"
    path.write_bytes(damage(neff.to_bytes(), tmp_path))
    with pytest.raises(NeffError, match=says) as refusal:
        read_neff(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NeffError, match=r"absent\.neff cannot be read: No such file"):
        read_neff(tmp_path / "absent.neff")


def test_a_zip_archive_of_something_else_is_refused(tmp_path):
    path = tmp_path / "other.neff"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("readme.txt", "hello")
    with pytest.raises(NeffError, match="damaged"):
        read_neff(path)


def test_a_full_disk_leaves_nothing_behind(neff, tmp_path, monkeypatch):
    def fails(source, target):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(files.os, "replace", fails)
    with pytest.raises(NeffError, match="cannot be written: No space left on device"):
        write_neff(neff, tmp_path / "model.neff")
    assert list(tmp_path.iterdir()) == []
