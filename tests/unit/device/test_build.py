"""The build step: one build per key, many processes at once, and plain words where it cannot be done."""

import os
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
    sources = len(list(build.SOURCE_FOLDER.glob("*.cpp")))
    assert log.read_text().count("call") == sources + 1
    assert sorted(entry.name for entry in Path(library).parent.iterdir()) == ["_neuron_device.so", "lock"]


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
