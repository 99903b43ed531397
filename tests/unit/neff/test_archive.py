"""Archives give back what was put in; anything else is refused in one sentence."""

import gzip
import io
import os
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest

from neuron_tools.neff import Neff, NeffError, files, limits, read_neff, write_neff
from neuron_tools.neff.archive import core_count
from neuron_tools.neff.program_file import program_pieces
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


WEIGHTS = [bytes(range(256)) * 5, b"", b"\1\2\3", b"\4" * 64]


def test_weights_are_views_of_the_archive_where_an_array_may_begin(neff):
    data = replace(neff, weights=[memoryview(weight) for weight in WEIGHTS]).to_bytes()
    start = np.frombuffer(data, np.uint8).ctypes.data
    found = Neff.from_bytes(data).weights
    assert [bytes(view) for view in found] == WEIGHTS
    assert all(view.obj is data for view in found)
    begins = [np.frombuffer(view, np.uint8).ctypes.data - start for view in found if len(view)]
    assert all(begin % 64 == 0 for begin in begins)


def test_the_table_of_contents_tells_how_many_cores_share_it_out(neff):
    assert core_count(neff.to_bytes()) == 1
    assert core_count(replace(neff, stages=[neff.program, neff.program]).to_bytes()) == 3
    assert core_count(b"PK, but no archive") == 1


def test_a_changed_weight_is_refused(neff):
    data = bytearray(replace(neff, weights=[memoryview(WEIGHTS[0])]).to_bytes())
    data[data.index(WEIGHTS[0]) + 7] ^= 1
    with pytest.raises(NeffError, match="is damaged"):
        Neff.from_bytes(bytes(data))


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


def test_a_folder_is_said_to_be_one(tmp_path):
    with pytest.raises(NeffError, match=r"is a folder: name a \.neff file"):
        read_neff(tmp_path)


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


def archive_of(pieces, path, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in pieces.items():
            archive.writestr(name, data)
    return path


def pieces_of(neff):
    with zipfile.ZipFile(io.BytesIO(neff.to_bytes())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_an_archive_that_would_fill_the_memory_is_refused_before_it_is_unpacked(neff, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("a piece was unpacked"))
    path = archive_of({"manifest.json": b"{}", "module.mlir": bytes(16 << 20)}, tmp_path / "b.neff")
    with pytest.raises(NeffError, match="would unpack to 167772"):
        read_neff(path)


def test_an_archive_of_too_many_pieces_is_refused(neff, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MOST_PIECES", 4096)
    path = archive_of({str(number): b"" for number in range(limits.MOST_PIECES + 1)}, tmp_path / "b.neff", 0)
    with pytest.raises(NeffError, match="has 4097 pieces"):
        read_neff(path)


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(2, 2)", "()", "(-1,)"])
def test_a_table_that_promises_other_rows_than_it_has_is_refused(neff, tmp_path, shape):
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}}}".encode().ljust(117) + b"\n"
    table = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(8)
    path = archive_of({**pieces_of(neff), "waits.npy": table}, tmp_path / "b.neff")
    with pytest.raises(NeffError, match="is damaged"):
        read_neff(path)


def with_value(table, column, value):
    changed = table.copy()
    changed[column][0] = value
    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda p: {"semaphore_count": 2**40},
        lambda p: {"semaphore_count": -1},
        lambda p: {"instructions": with_value(p.instructions, "opcode", 60_000)},
        lambda p: {"instructions": with_value(p.instructions, "input_dtype", 99)},
        lambda p: {"instructions": with_value(p.instructions, "elements", -5)},
        lambda p: {"instructions": with_value(p.instructions, "source", 2**30)},
        lambda p: {"dmas": with_value(p.dmas, "tile", -7)},
        lambda p: {"dmas": with_value(p.dmas, "purpose", 200)},
        lambda p: {"dmas": with_value(p.dmas, "hlo", 2**30)},
        lambda p: {"dmas": with_value(p.dmas, "descriptors", -1)},
        lambda p: {"tiles": with_value(p.tiles, "memory", 77)},
        lambda p: {"tiles": with_value(p.tiles, "address", -4)},
        lambda p: {"tiles": with_value(p.tiles, "last_use", 2**30)},
        lambda p: {"hlo": (replace(p.hlo[0], framework=(99,)), *p.hlo[1:])},
        lambda p: {"tensors": (replace(p.tensors[0], shape=(2**40, 2**40)), *p.tensors[1:])},
    ],
)
def test_a_program_whose_tables_do_not_fit_is_refused_when_it_is_read(neff, tmp_path, change):
    changed = replace(neff.program, **change(neff.program))
    path = archive_of({**pieces_of(neff), **program_pieces(changed)}, tmp_path / "b.neff")
    with pytest.raises(NeffError, match="is damaged"):
        read_neff(path)


def test_deeply_nested_json_is_refused(neff, tmp_path):
    path = archive_of({**pieces_of(neff), "program.json": b"[" * 100_000}, tmp_path / "b.neff")
    with pytest.raises(NeffError, match="is damaged"):
        read_neff(path)


def test_a_header_that_is_no_text_of_a_table_is_damage(neff, tmp_path):
    with zipfile.ZipFile(io.BytesIO(neff.to_bytes())) as archive:
        pieces = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in pieces if name.endswith(".npy"))
    pieces[name] = pieces[name].replace(b"}", b"(", 1)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for each, data in pieces.items():
            archive.writestr(each, data)
    with pytest.raises(NeffError, match="damaged"):
        Neff.from_bytes(made.getvalue())


def test_programs_of_both_cores_of_a_logical_one_are_kept(neff):
    second = replace(neff.program, name="second")
    both = replace(neff.program, physical_cores=2, second=second)
    found = Neff.from_bytes(replace(neff, program=both).to_bytes()).program
    assert_same_program(found.of_cores[1], second)
    alike = replace(neff.program, physical_cores=2)
    assert Neff.from_bytes(replace(neff, program=alike).to_bytes()).program.second is None


@pytest.mark.parametrize("cores", [0, 3])
def test_no_neuron_core_has_another_number_of_cores(neff, cores):
    data = replace(neff, program=replace(neff.program, physical_cores=cores)).to_bytes()
    with pytest.raises(NeffError):
        Neff.from_bytes(data)
