import subprocess
import sys

import pytest

from neuron_profile.cli import COMMANDS, neuron_profile
from neuron_tools.command_line import run

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
        "from neuron_tools.command_line import run\n"
        "status = run(neuron_profile, 'neuron-profile', ['--help']);"
        f"print([name for name in {HEAVY} if name in sys.modules]); sys.exit(status)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"
    assert all(f"\n  {name} " in answer.stdout for name in COMMANDS)
    assert "..." not in answer.stdout.partition("Commands:")[2], "a command's first sentence fits its line"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bogus"], "Error: No such command 'bogus'. See 'neuron-profile --help'.\n"),
        (["query"], "Error: Missing argument 'PROFILE'. See 'neuron-profile query --help'.\n"),
        (
            ["mcp", "--port", "me"],
            "Error: Invalid value for '--port': 'me' is no whole number. See 'neuron-profile mcp --help'.\n",
        ),
        (["info", "--nope"], "Error: No such option '--nope'. See 'neuron-profile info --help'.\n"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(neuron_profile, "neuron-profile", arguments) == 2
    assert capsys.readouterr() == ("", message)
