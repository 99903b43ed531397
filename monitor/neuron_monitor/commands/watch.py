"""`neuron-monitor watch`: the monitor's own alerts, printed and sent."""

from __future__ import annotations

import json
import time
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import click

from neuron_monitor.commands.options import host_option, tree_option
from neuron_tools.command_line import command
from neuron_tools.errors import UsageError
from neuron_tools.listening import read_token

TIMEOUT_S = 5.0


@command(example="neuron-monitor watch\nneuron-monitor watch --to http://127.0.0.1:9099/alerts --idle 10m")
@click.option("--to", "url", default="", metavar="URL", help="Sends each alert there, as Alertmanager would.")
@click.option("--token-file", metavar="FILE", help="What is sent carries this file's text as bearer token.")
@click.option("--period", default="1s", show_default=True, help="Time between looks.")
@click.option("--idle", default="15m", show_default=True, help="A held core may do nothing for so long.")
@click.option("--rest", default="5m", show_default=True, help="The same is not told again within so long.")
@click.option("--count", type=click.IntRange(1), metavar="N", help="End after N looks.")
@host_option
@tree_option
def watch(
    url: str,
    token_file: str | None,
    period: str,
    idle: str,
    rest: str,
    count: int | None,
    host_metrics: str,
    sysfs_root: str | None,
) -> None:
    """Print a line of JSON for each alert.

    Alerts tell of failed executions, idle cores, latency, memory, throttling, bit errors, and compiling again
    and again. With `--to` the alerts go to `neuron-profile respond`, which finds the line behind them, or to
    any other receiver of Alertmanager's messages.
    """
    from neuron_monitor.api.view import Windows
    from neuron_monitor.commands.start import make_sampler
    from neuron_monitor.report.config import parse_duration
    from neuron_monitor.watch.alert import message
    from neuron_monitor.watch.rules import Thresholds, Watcher, all_rules

    if url and urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"'{url}' is no address: write it like http://127.0.0.1:9099/alerts.")
    token, period_s = read_token(token_file), parse_duration(period)
    watcher = Watcher(all_rules(Thresholds(idle_s=parse_duration(idle))), parse_duration(rest))
    sampler = make_sampler(sysfs_root, host_metrics)
    windows = Windows(sampler.sample())
    looks = 0
    while count is None or looks < count:
        time.sleep(period_s)
        looks += 1
        alerts = watcher.look(windows.advance(sampler.sample()))
        if alerts:
            told = message(alerts, time.time())
            for alert in told["alerts"]:
                click.echo(json.dumps(alert))
            _send(url, told, token)


def _send(url: str, told: dict[str, object], token: str | None) -> None:
    """Send alerts where they are wanted; who cannot be reached is told of in a line."""
    if not url:
        return
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    try:
        with urlopen(Request(url, json.dumps(told).encode(), headers, method="POST"), timeout=TIMEOUT_S):
            return
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        click.echo(f"neuron-monitor: {url} was not told: {reason}.", err=True)
