"""What tests run in a process forked from their own is what a user's command is."""

import os

import pytest

from tests.fixtures import forked_commands

PATIENCE_S = 600.0


@pytest.mark.parametrize("arguments", [["query", "none.nprof", "SELECT 1"], ["show-schema", "TraceSpan"]])
def test_a_forked_command_says_what_a_fresh_one_says(workplace, arguments) -> None:
    fresh = workplace.run(*arguments)
    forked = forked_commands.neuron_profile(arguments, workplace.folder, os.environ, PATIENCE_S)
    assert (forked.returncode, forked.stdout, forked.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)
    assert fresh.stdout + fresh.stderr


def test_a_forked_command_has_the_folder_and_the_variables_that_it_is_given(workplace) -> None:
    workplace.script("tell.sh", "pwd; echo $GIVEN; echo $PATH >&2; exit 3\n")
    arguments = ["capture", "-o", "run.nprof", "--", "/bin/sh", "tell.sh"]
    variables = {"GIVEN": "yes", "PATH": "/bin"}
    forked = forked_commands.neuron_profile(arguments, workplace.folder, variables, PATIENCE_S)
    assert (forked.returncode, forked.stdout) == (3, f"{workplace.folder.resolve()}\nyes\n")
    assert "\n/bin:" in forked.stderr
    assert workplace.info("run.nprof")["exit_status"] == 3
