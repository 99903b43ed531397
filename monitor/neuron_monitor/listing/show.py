"""Reads the devices once and prints the listing."""

from __future__ import annotations

import json
import sys

import click

from neuron_monitor.api.instance import Instance
from neuron_monitor.api.root import find_root
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.errors import NoDevicesError
from neuron_monitor.listing import devices
from neuron_monitor.listing.table import as_table
from neuron_monitor.listing.topology import ASCII_STROKES, UNICODE_STROKES, draw_topology


def show(sysfs_root: str | None, *, wide: bool, with_all: bool, topology: bool, as_json: bool) -> None:
    """Print the listing; what could not be read goes to standard error.

    Raises:
        NoDevicesError: There is no device.
    """
    root = find_root(sysfs_root)
    tree = DeviceTree(root, with_counts=False).read()
    if not tree.devices:
        raise NoDevicesError(
            f"There is no Neuron device in {root}: load the driver, or run a program on the simulated device."
        )
    for fault in tree.faults:
        click.echo(f"Warning: {fault}", err=True)
    facts = Instance().facts(tree.instance_type)
    listing = devices.make_listing(tree, facts, with_all=with_all)
    if as_json:
        click.echo(json.dumps(devices.as_json(listing), indent=4))
        return
    click.echo(as_table(listing, wide=wide))
    if topology:
        encodes = "utf" in (sys.stdout.encoding or "").lower()
        click.echo("\nNeuron Device Topology\n")
        click.echo(draw_topology(listing, UNICODE_STROKES if encodes else ASCII_STROKES))
