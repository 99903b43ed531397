import sys
from pathlib import Path

import pytest

from neuron_profile.launch.target_command import understand
from neuron_tools.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)\n")
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [[], ["-u"], ["-X", "dev"], ["-W", "error", "-OO"], ["-Wignore"], ["--check-hash-based-pycs", "never"]],
)
def test_the_script_is_found_after_python_options(folder: Path, options: list[str]) -> None:
    target = understand([sys.executable, *options, "train.py", "missing.py"])
    assert target.script == Path("train.py")
    assert target.interpreter == Path(sys.executable)


@pytest.mark.parametrize("arguments", [["-c", "x.py"], ["-m", "x.py"], ["-um", "x.py"], ["-"], []])
def test_python_without_a_script(folder: Path, arguments: list[str]) -> None:
    assert understand([sys.executable, *arguments]).script is None


def test_a_python_file_alone_is_run_with_this_python(folder: Path) -> None:
    target = understand(["train.py", "--fast"])
    assert target.arguments == (sys.executable, "train.py", "--fast")
    assert target.script == Path("train.py")


@pytest.mark.parametrize("first_line", [f"#!{sys.executable}", "#!/usr/bin/env -S python3 -u"])
def test_console_scripts_name_their_interpreter(
    folder: Path, first_line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin")
    script = folder / "torchrun"
    script.write_text(f"{first_line}\nprint(1)\n")
    script.chmod(0o755)
    target = understand(["torchrun", "train.py"])
    assert target.interpreter is not None
    assert target.interpreter.name.startswith("python")
    assert target.script == folder / "torchrun"


def test_other_programs_have_no_interpreter() -> None:
    target = understand(["ls", "-l"])
    assert (target.arguments, target.interpreter, target.script) == (("ls", "-l"), None, None)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([], "No command to capture: write it after --"),
        (["no-such-program"], "The command 'no-such-program' was not found"),
        (["missing.py"], "The script missing.py does not exist."),
        (["missing.ipynb"], "The notebook missing.ipynb does not exist."),
        ([sys.executable, "missing.py"], "The script missing.py does not exist."),
        (["."], ". is a folder, not a command."),
        ([sys.executable, "."], ". is a folder without __main__.py"),
        (["./data.txt"], "./data.txt cannot be run: make it executable"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_sentence(folder: Path, command: list[str], message: str) -> None:
    (folder / "data.txt").write_text("")
    with pytest.raises(UsageError) as raised:
        understand(command)
    assert str(raised.value).startswith(message)
    assert raised.value.exit_status == 2
