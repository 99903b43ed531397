import subprocess
import sys

import pytest

from neuron_tools.command_line import command, describe, run
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.extras import EXTRA_OF_MODULE
from tests.integration.project.checkout import ROOT


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
        "import click, sys; from neuron_tools.command_line import command, run\n"
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


def test_a_missing_package_is_named_with_the_extra_that_brings_it() -> None:
    error = ModuleNotFoundError("No module named 'pyarrow.parquet'", name="pyarrow.parquet")
    assert describe(error) == ("pyarrow is not installed: pip install 'neuron-tools[profile]'.", 1)
    assert describe(ModuleNotFoundError("No module named 'x'", name="x"))[0].startswith("ModuleNotFoundError")


@pytest.mark.parametrize(("module", "extra"), sorted(EXTRA_OF_MODULE.items()))
def test_the_extra_of_a_module_brings_it(module: str, extra: str) -> None:
    """The table follows pyproject.toml: `NAME = [...]` has a requirement of that package."""
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    (declared,) = [line for line in lines if line.startswith(f"{extra} = [")]
    package = {"distributed": "dask[distributed]"}.get(module, module.replace("_", "-"))
    assert f'"{package}' in declared
