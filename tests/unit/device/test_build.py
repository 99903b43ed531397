"""The build step: one build per key, many processes at once, and plain words where it cannot be done."""

import importlib.metadata
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from neuron_tools.device import build

# Stands in for g++: notes each call and writes the file that was asked for.
COMPILER = """#!/bin/sh
echo call >> "{log}"
while [ $# -gt 0 ]; do
  if [ "$1" = "-o" ]; then echo built > "$2"; fi
  shift
done
"""


def make_compiler(folder: Path, text: str = COMPILER) -> tuple[Path, Path]:
    compiler, log = folder / "compiler", folder / "calls"
    compiler.write_text(text.format(log=log))
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    return compiler, log


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURON_TOOLS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_cache_folder_is_chosen_by_the_user_then_by_xdg(monkeypatch):
    monkeypatch.setenv("NEURON_TOOLS_CACHE", "/chosen")
    assert build.cache_folder() == Path("/chosen")
    monkeypatch.delenv("NEURON_TOOLS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert build.cache_folder() == Path("/xdg/neuron-tools")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert build.cache_folder() == Path("/home/me/.cache/neuron-tools")


def test_the_key_changes_with_the_sources(tmp_path, monkeypatch):
    before = build.build_key()
    for source in build.SOURCE_FOLDER.iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr(build, "SOURCE_FOLDER", tmp_path)
    assert build.build_key() == before
    (tmp_path / "device.cpp").write_text("// changed")
    assert build.build_key() != before


def test_many_processes_at_once_build_once(cache, tmp_path):
    compiler, log = make_compiler(tmp_path)
    program = "from neuron_tools.device import build; print(build.build())"
    environment = {**os.environ, "CXX": str(compiler), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    libraries = {process.communicate()[0].decode().strip() for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    (library,) = libraries
    assert Path(library).read_text() == "built\n"
    units = min(build.MAX_UNITS, os.cpu_count())
    assert log.read_text().count("call") == units + 1
    assert sorted(entry.name for entry in Path(library).parent.iterdir()) == ["_neuron_device.so", "lock"]


def test_units_include_each_source_once_and_are_of_like_size():
    units = build.unit_texts(build.SOURCE_FOLDER, 2)
    names = [re.findall(r'^#include "(.*)"$', unit, re.MULTILINE) for unit in units]
    assert sorted(name for unit in names for name in unit) == sorted(
        map(str, build.SOURCE_FOLDER.glob("*.cpp"))
    )
    small, large = sorted(sum(Path(name).stat().st_size for name in unit) for unit in names)
    assert large < 1.5 * small


def test_one_source_is_one_unit(tmp_path):
    (tmp_path / "only.cpp").write_text("int one;")
    assert build.unit_texts(tmp_path, 2) == [f'#include "{tmp_path / "only.cpp"}"\n']


@pytest.fixture
def shipped(cache, tmp_path, monkeypatch):
    """A library that came with the wheel, which does not load here, and no compiler's call yet."""
    monkeypatch.setattr(build, "SHIPPED_FOLDER", tmp_path / "built")
    library = build.shipped_path(build.device_extension())
    library.parent.mkdir(parents=True)
    library.write_text("shipped")
    return library


def test_what_the_wheel_has_is_not_built(shipped, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    assert build.build() == shipped
    assert build.is_there(importlib.metadata.version("torch"))
    assert not build.is_there("9.9")


def test_a_shipped_library_that_does_not_load_here_is_built_from_source(shipped, tmp_path, monkeypatch):
    compiler, log = make_compiler(tmp_path)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.delitem(sys.modules, build.MODULE_NAME, raising=False)
    with pytest.raises(build.DeviceBuildError, match="does not load"):
        build.load()
    assert log.exists()
    assert build.built_path(build.device_extension()).exists()


def test_wheels_of_one_release_share_a_build(monkeypatch):
    import torch

    before = build.build_key()
    monkeypatch.setattr(torch, "__version__", torch.__version__.partition("+")[0] + "+cu999")
    assert build.build_key() == before


def test_a_missing_compiler_says_what_to_install(cache, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(build.NoCompilerError, match=r"install g\+\+ \(apt install g\+\+\)"):
        build.build()


def test_a_compiler_that_is_not_there_is_named(cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(build.NoCompilerError, match="no-such-compiler"):
        build.build()


def test_a_failed_compile_gives_the_file_and_the_compilers_words(cache, tmp_path, monkeypatch):
    compiler, _ = make_compiler(tmp_path, "#!/bin/sh\necho 'x.cpp:1: error: no such thing' >&2\nexit 1\n")
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(build.DeviceBuildError, match=r"failed at \w+\.cpp: x.cpp:1: error: no such thing"):
        build.build()
    assert not build.library_path().exists()


def test_an_unusable_cache_folder_says_what_to_set(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEURON_TOOLS_CACHE", str(tmp_path / "file"))
    with pytest.raises(build.CacheFolderError, match="set NEURON_TOOLS_CACHE"):
        build.build()


def test_the_build_step_prints_one_line_and_fails_without_a_compiler(cache, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "1")  # main() sets it: the test must bring it back
    assert build.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("neuron-tools: There is no C++ compiler")


def test_a_library_that_does_not_load_says_which_file_to_delete(cache, tmp_path, monkeypatch):
    compiler, _ = make_compiler(tmp_path)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.delitem(sys.modules, build.MODULE_NAME, raising=False)
    with pytest.raises(build.DeviceBuildError, match=r"does not load .* delete that file"):
        build.load()
