"""The `neuron-top` command."""

from __future__ import annotations

import sys

import click

from neuron_monitor.commands.options import host_option, tree_option
from neuron_tools.command_line import command, run


@command(example="neuron-top\nneuron-top --period 500ms\nNO_COLOR=1 neuron-top --ascii")
@click.option("--period", default="1s", show_default=True, help="Time between samples.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII only.")
@host_option
@tree_option
def neuron_top(period: str, ascii_only: bool, host_metrics: str, sysfs_root: str | None) -> None:
    """Watch Neuron devices, real or simulated, and the processes on them. Press ? for the keys."""
    from neuron_monitor.commands.start import make_sampler
    from neuron_monitor.report.config import parse_duration
    from neuron_monitor.top.app import TopApp

    encodes = "utf" in (sys.stdout.encoding or "").lower()
    sampler = make_sampler(sysfs_root, host_metrics)
    TopApp(sampler, parse_duration(period), ascii_only=ascii_only or not encodes).run()


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(neuron_top, "neuron-top", sys.argv[1:]))


if __name__ == "__main__":
    main()
