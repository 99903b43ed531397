"""The tree that a command is told to read is there."""

import click
import pytest
from click.testing import CliRunner

from neuron_monitor.commands.options import tree_option
from neuron_tools.command_line import command
from neuron_tools.errors import UsageError


@command(example="read")
@tree_option
def read(sysfs_root: str | None) -> None:
    """Say what is read."""
    click.echo(sysfs_root)


def test_a_folder_is_taken(tmp_path):
    assert CliRunner().invoke(read, ["--sysfs-root", str(tmp_path)]).output == f"{tmp_path}\n"


@pytest.mark.parametrize("name", ["none", "file"])
def test_what_is_no_folder_is_refused_in_one_sentence(tmp_path, name):
    (tmp_path / "file").write_text("")
    told = CliRunner().invoke(read, ["--sysfs-root", str(tmp_path / name)]).exception
    assert isinstance(told, UsageError)
    assert str(told).startswith(f"There is no folder {tmp_path / name}: name the tree of devices")
