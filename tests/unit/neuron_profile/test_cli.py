import subprocess
import sys

import pytest

from neuron_profile.cli import COMMANDS, neuron_profile
from neuron_profile.command_line import command, describe, run
from neuron_tools.errors import NeuronToolsError, UsageError

HEAVY = ("torch", "numpy", "pyarrow", "duckdb", "rich", "numba", "dash")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_have_help_with_an_example(name: str, capsys: pytest.CaptureFixture) -> None:
    assert run(neuron_profile, "neuron-profile", [name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"Example:\n    neuron-profile {name} " in text
    assert run(neuron_profile, "neuron-profile", [name, "--version"]) == 0
    assert capsys.readouterr().out.startswith("neuron-profile ")


def test_help_lists_the_commands_and_needs_no_heavy_package() -> None:
    code = (
        "import sys; from neuron_profile.cli import neuron_profile\n"
        "from neuron_profile.command_line import run\n"
        "status = run(neuron_profile, 'neuron-profile', ['--help']);"
        f"print([name for name in {HEAVY} if name in sys.modules]); sys.exit(status)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"
    assert all(f"\n  {name} " in answer.stdout for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bogus"], "Error: No such command 'bogus'. See 'neuron-profile --help'.\n"),
        (["query"], "Error: Missing argument 'PROFILE'. See 'neuron-profile query --help'.\n"),
        (["info", "--nope"], "Error: No such option '--nope'. See 'neuron-profile info --help'.\n"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(neuron_profile, "neuron-profile", arguments) == 2
    assert capsys.readouterr() == ("", message)


def test_errors_are_one_line_with_their_status() -> None:
    assert describe(UsageError("two\n lines")) == ("two lines", 2)
    assert describe(NeuronToolsError("broken")) == ("broken", 1)
    assert describe(FileNotFoundError(2, "No such file or directory", "x")) == (
        "x: No such file or directory.",
        1,
    )
    assert describe(ValueError("odd")) == ("ValueError: odd (run again with --debug for the traceback)", 1)


def test_the_traceback_is_for_debug_only(capsys: pytest.CaptureFixture[str]) -> None:
    @command(example="fail")
    def fail() -> None:
        """Fail."""
        raise NeuronToolsError("broken")

    assert run(fail, "fail", []) == 1
    assert capsys.readouterr().err == "Error: broken\n"
    assert run(fail, "fail", ["--debug"]) == 1
    text = capsys.readouterr().err
    assert text.startswith("Traceback")
    assert text.endswith("Error: broken\n")


def test_an_interrupt_ends_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    @command(example="wait")
    def wait() -> None:
        """Wait."""
        raise KeyboardInterrupt

    assert run(wait, "wait", []) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = (
        "import click, sys; from neuron_profile.command_line import command, run\n"
        "@command(example='x')\n"
        "def talk():\n    'Talk.'\n    [click.echo('x' * 1000) for _ in range(1000)]\n"
        "sys.exit(run(talk, 'talk', []))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1
