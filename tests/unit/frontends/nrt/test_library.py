"""Programs that load AWS's runtime library with ctypes execute artifacts that were compiled here."""

from __future__ import annotations

import _ctypes
import ctypes
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuron_tools import compat
from neuron_tools.frontends.nki import kept_kernels
from neuron_tools.frontends.nki.benchmark import baremetal
from neuron_tools.neff import read_neff, write_neff
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.kernel import jit

PATH = "/opt/no/such/folder/libnrt.so.1"
SUCCESS, FAILURE, INVALID_HANDLE = 0, 1, 3


class TensorInfo(ctypes.Structure):
    """As `nrt.h` has it."""

    _fields_ = (
        ("name", c_char * 256), ("usage", c_int), ("size", c_size_t), ("dtype", c_int),
        ("shape", POINTER(c_uint32)), ("ndim", c_uint32),
    )  # fmt: skip


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(kept_kernels, "cache_folder", lambda: tmp_path / "cache")
    uninstall = compat.install()
    yield ctypes.CDLL(PATH)
    uninstall()


def compiled(path: Path, factor: float, dtype: Any = nl.float32) -> bytes:
    """The artifact of a kernel that multiplies by a constant."""

    def scale(x: Any, bias: Any) -> Any:
        result = nl.ndarray(x.shape, dtype, nl.shared_hbm)
        tile, added = (nl.ndarray(x.shape, nl.float32, nl.sbuf) for _ in range(2))
        nisa.dma_copy(tile, x)
        nisa.dma_copy(added, bias)
        nisa.tensor_scalar(tile, tile, nl.multiply, factor)
        out = nl.ndarray(x.shape, dtype, nl.sbuf)
        nisa.tensor_tensor(out, tile, added, nl.add)
        nisa.dma_copy(result, out)
        return result

    zeros = np.zeros((4, 8), np.float32)
    baremetal(jit(scale), save_neff_name=str(path))(zeros, zeros)
    return path.read_bytes()


def load(library: Any, data: bytes) -> c_void_p:
    model = c_void_p()
    assert library.nrt_load(data, len(data), 0, -1, byref(model)) == SUCCESS
    return model


def tensors_of(library: Any, model: c_void_p) -> list[TensorInfo]:
    found = c_void_p()
    assert library.nrt_get_model_tensor_info(model, byref(found)) == SUCCESS
    assert found.value is not None
    count = c_uint64.from_address(found.value).value
    return list((TensorInfo * count).from_address(found.value + ctypes.sizeof(c_uint64)))


def executed(library: Any, model: c_void_p, *inputs: np.ndarray) -> bytes:
    """The bytes of the one result."""
    given, results = c_void_p(), c_void_p()
    for tensors in (given, results):
        assert library.nrt_allocate_tensor_set(byref(tensors)) == SUCCESS
    values = iter(inputs)
    size, last = 0, c_void_p()
    for info in tensors_of(library, model):
        last, size = c_void_p(), info.size
        assert library.nrt_tensor_allocate(0, 0, info.size, info.name, byref(last)) == SUCCESS
        if info.usage == 0:
            value = next(values)
            assert library.nrt_tensor_write(last, value.ctypes.data, 0, value.nbytes) == SUCCESS
        library.nrt_add_tensor_to_tensor_set(results if info.usage else given, info.name, last)
    assert library.nrt_execute(model, given, results) == SUCCESS
    read = (c_char * size)()
    assert library.nrt_tensor_read(last, read, 0, size) == SUCCESS
    return bytes(read)


def test_kernels_of_equal_instructions_compute_their_own_values(library: Any, tmp_path: Path) -> None:
    assert library.nrt_init(1, b"", b"") == SUCCESS
    x, bias = np.random.rand(4, 8).astype(np.float32), np.random.rand(4, 8).astype(np.float32)
    for factor in (2.0, 3.0):
        model = load(library, compiled(tmp_path / f"{factor}.neff", factor))
        result = np.frombuffer(executed(library, model, x, bias), np.float32).reshape(4, 8)
        np.testing.assert_allclose(result, x * np.float32(factor) + bias, rtol=1e-6)


def test_tensors_are_told_with_names_shapes_and_types(library: Any, tmp_path: Path) -> None:
    model = load(library, compiled(tmp_path / "a.neff", 2.0, nl.bfloat16))
    told = [(i.name, i.usage, i.size, i.dtype, i.shape[: i.ndim]) for i in tensors_of(library, model)]
    assert told == [
        (b"input0", 0, 128, 1, [4, 8]), (b"input1", 0, 128, 1, [4, 8]), (b"output0", 1, 64, 3, [4, 8])
    ]  # fmt: skip


def test_what_was_freed_is_no_handle(library: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = load(library, compiled(tmp_path / "a.neff", 2.0))
    assert library.nrt_unload(model) == SUCCESS
    assert library.nrt_execute(model, None, None) == INVALID_HANDLE
    assert "no handle of a model" in capfd.readouterr().err


def test_a_handle_is_known_to_whoever_loads_the_library_until_it_is_closed(library: Any) -> None:
    tensor, byte, again = c_void_p(), (c_char * 1)(), ctypes.CDLL(PATH)
    assert library.nrt_tensor_allocate(0, 0, 1, b"x", byref(tensor)) == SUCCESS
    assert again.nrt_tensor_read(tensor, byte, 0, 1) == SUCCESS
    assert library.nrt_close() == SUCCESS
    assert again.nrt_tensor_read(tensor, byte, 0, 1) == INVALID_HANDLE


def test_nothing_is_read_or_written_past_the_end_of_a_tensor(
    library: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    tensor, memory = c_void_p(), ctypes.create_string_buffer(b"abcdefghijklmnop", 16)
    assert library.nrt_tensor_allocate(0, 0, 8, b"x", byref(tensor)) == SUCCESS
    assert library.nrt_tensor_write(tensor, memory, 0, 8) == SUCCESS
    for function in (library.nrt_tensor_write, library.nrt_tensor_read):
        assert function(tensor, memory, 4, 8) == INVALID_HANDLE
        assert "Bytes 4 to 12 are not all in a tensor of 8" in capfd.readouterr().err
    assert bytes(memory) == b"abcdefghijklmnop"
    assert library.nrt_tensor_read(tensor, memory, 4, 4) == SUCCESS
    assert bytes(memory) == b"efghefghijklmnop"


def test_tensors_that_a_set_lacks_are_named(
    library: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model, tensors = load(library, compiled(tmp_path / "a.neff", 2.0)), c_void_p()
    library.nrt_allocate_tensor_set(byref(tensors))
    assert library.nrt_execute(model, tensors, tensors) == INVALID_HANDLE
    assert "needs a tensor input0 of 128 bytes" in capfd.readouterr().err


@pytest.mark.parametrize("lost", ["kernel", "attachment"])
def test_an_artifact_from_elsewhere_gives_times_alone(
    library: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], lost: str
) -> None:
    data = compiled(tmp_path / "a.neff", 2.0)
    if lost == "kernel":
        for kept in (tmp_path / "cache" / "kernels").iterdir():
            kept.unlink()
    else:
        neff = read_neff(tmp_path / "a.neff")
        write_neff(type(neff)(neff.program), tmp_path / "b.neff")
        data = (tmp_path / "b.neff").read_bytes()
    assert library.nrt_load(data, len(data), 0, -1, byref(c_void_p())) == FAILURE
    assert "compile it here" in capfd.readouterr().err


def test_a_kept_kernel_that_was_changed_is_refused(
    library: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = compiled(tmp_path / "a.neff", 2.0)
    (kept,) = (tmp_path / "cache" / "kernels").iterdir()
    kept.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    assert library.nrt_load(data, len(data), 0, -1, byref(c_void_p())) == FAILURE
    assert "is damaged" in capfd.readouterr().err


def test_other_libraries_are_loaded_as_ever(library: Any) -> None:
    assert ctypes.CDLL(None).getpid() > 0
    with pytest.raises(OSError, match="libnothing"):
        ctypes.CDLL("/opt/no/such/folder/libnothing.so")


def test_a_library_that_the_system_finds_by_its_name_is_loaded(tmp_path: Path) -> None:
    shutil.copy(_ctypes.__file__, tmp_path / "libnrt.so.1")
    text = (
        "from neuron_tools import compat; compat.install(); import ctypes; "
        "print(type(ctypes.CDLL('libnrt.so.1')))"
    )
    for folder, kind in ((tmp_path, "ctypes.CDLL"), (tmp_path / "none", "RuntimeLibrary")):
        environment = {"PYTHONPATH": ":".join(sys.path), "LD_LIBRARY_PATH": str(folder)}
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False,
                              env=environment)  # fmt: skip
        assert kind in done.stdout, done.stderr


def test_ctypes_is_changed_when_it_is_imported_and_not_before() -> None:
    lines = (
        "import sys; from neuron_tools import compat; end = compat.install()",
        "assert 'ctypes' not in sys.modules; import ctypes",
        f"ctypes.CDLL({PATH!r}).nrt_init; end()",
        f"\ntry: ctypes.CDLL({PATH!r})\nexcept OSError: print('gone')",
    )
    done = subprocess.run([sys.executable, "-S", "-c", "; ".join(lines[:3]) + lines[3]], capture_output=True,
                          text=True, check=False, env={"PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert done.stdout.strip() == "gone", done.stderr
