"""`python -m neuron_tools.device.driver`: a tree that stays, as a loaded driver's does.

python -m neuron_tools.device.driver load [--target trn2]
python -m neuron_tools.device.driver unload
python -m neuron_tools.device.driver sweep
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from neuron_tools.device.driver.departure import sweep
from neuron_tools.device.driver.errors import DriverError
from neuron_tools.device.driver.machine import FILE, read_machine, simulated_machine
from neuron_tools.device.driver.processes import published_pids
from neuron_tools.device.driver.root import locked, root_folder
from neuron_tools.device.driver.tree import make_tree, remove_tree
from neuron_tools.errors import NeuronToolsError


def load(root: Path, target: str) -> str:
    """Makes the tree, or lets the one that is there stay; returns a sentence.

    Raises:
        DriverError: The folder holds another driver's tree.
        UnknownTargetError: There is no such target.
        OSError: The folder cannot be written.
    """
    wanted = simulated_machine(target, stays=True)
    with locked(root):
        shown = make_tree(root, wanted)
        if not shown.stays:
            (root / FILE).write_text(replace(shown, stays=True).as_text(), encoding="utf-8")
    return f"{shown.instance_type}: {shown.device_count} devices in {root}"


def unload(root: Path) -> str:
    """Removes the tree; returns a sentence.

    Raises:
        DriverError: Processes publish in it.
        OSError: The folder cannot be written.
    """
    sweep(root)
    if read_machine(root) is None:
        return f"There is no simulated driver in {root}."
    with locked(root):
        pids = published_pids(root)
        if pids:
            names = ", ".join(map(str, pids))
            raise DriverError(f"Processes use the simulated device: {names}. End them, then unload.")
        remove_tree(root)
    return f"removed {root}"


def main(arguments: list[str] | None = None) -> int:
    """Runs one of the commands."""
    parser = argparse.ArgumentParser(
        prog="python -m neuron_tools.device.driver", description="The simulated driver's tree."
    )
    parser.add_argument("command", choices=("load", "unload", "sweep"))
    parser.add_argument("--target", default="trn2", help="generation or instance type to show [trn2]")
    options = parser.parse_args(arguments)
    root = root_folder()
    if root is None:
        print("neuron-tools: NEURON_SYSFS_ROOT is empty: unset it, or name a folder.", file=sys.stderr)
        return 2
    try:
        print(_run(options.command, root, options.target))
    except (NeuronToolsError, OSError) as error:
        print(f"neuron-tools: {error}", file=sys.stderr)
        return error.exit_status if isinstance(error, NeuronToolsError) else 1
    return 0


def _run(command: str, root: Path, target: str) -> str:
    if command == "load":
        return load(root, target)
    if command == "unload":
        return unload(root)
    gone = sweep(root)
    return f"removed what {len(gone)} ended processes left"


if __name__ == "__main__":
    sys.exit(main())
