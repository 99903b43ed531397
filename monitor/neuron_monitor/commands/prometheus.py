"""`neuron-monitor prometheus`: an exporter that Prometheus scrapes."""

from __future__ import annotations

import threading

import click

from neuron_monitor.commands.options import host_option, pods_option, tree_option
from neuron_tools.command_line import command
from neuron_tools.listening import read_token

DEFAULT_PORT = 8000
DEFAULT_PERIOD = "1s"


@command(
    example="neuron-monitor prometheus --port 8000\n"
    "neuron-monitor prometheus --address 0.0.0.0 --token-file /etc/neuron-monitor/token"
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0 = any."
)
@click.option("--address", default="127.0.0.1", show_default=True, help="Beyond this machine, needs a token.")
@click.option("--token-file", metavar="FILE", help="Scrapes must carry this file's text as bearer token.")
@click.option("--period", default=DEFAULT_PERIOD, show_default=True, help="Time between samples.")
@pods_option
@host_option
@tree_option
def prometheus(
    port: int,
    address: str,
    token_file: str | None,
    period: str,
    kubernetes: bool | None,
    host_metrics: str,
    sysfs_root: str | None,
) -> None:
    """Serve AWS's metrics, and more, to Prometheus."""
    from neuron_monitor.api.instance import Instance
    from neuron_monitor.commands.start import make_pods, make_sampler
    from neuron_monitor.prometheus.exporter import Exporter
    from neuron_monitor.prometheus.server import MetricsServer
    from neuron_monitor.report.config import parse_duration

    instance = Instance()
    instance.wait()  # Facts are labels of every series: what came later would begin new ones.
    sampler = make_sampler(sysfs_root, host_metrics, instance)
    exporter = Exporter(sampler, parse_duration(period), make_pods(kubernetes))
    server = MetricsServer(exporter, address, port, read_token(token_file))
    exporter.update()
    stopped = threading.Event()
    threading.Thread(target=exporter.run, args=(stopped,), name="sampler", daemon=True).start()
    click.echo(f"Metrics are at http://{address}:{server.port}/metrics", err=True)
    try:
        server.serve_forever()
    finally:
        stopped.set()
