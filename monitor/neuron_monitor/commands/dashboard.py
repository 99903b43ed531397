"""`neuron-monitor dashboard`: the live page in the browser."""

from __future__ import annotations

import socket
import threading

import click

from neuron_monitor.commands.options import host_option, tree_option
from neuron_tools.command_line import command, port_option
from neuron_tools.listening import read_token, require_token

DEFAULT_PORT = 3010


@command(
    example="neuron-monitor dashboard\n"
    "neuron-monitor dashboard --period 500ms --history 1h --record history/\n"
    "neuron-monitor dashboard --prometheus http://prometheus:9090"
)
@port_option(DEFAULT_PORT)
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="Beyond this machine, needs a token file."
)
@click.option("--token-file", metavar="FILE", help="The token of the address, instead of a new one.")
@click.option("--period", default="1s", show_default=True, help="Time between samples.")
@click.option("--history", default="15m", show_default=True, help="How much is kept in memory.")
@click.option("--record", metavar="DIR", help="Also keep the history in Parquet files.")
@click.option("--record-limit", type=click.IntRange(1), default=512, show_default=True, help="MiB in DIR.")
@click.option(
    "--prometheus", "prometheus_url", metavar="URL", help="Show the fleet that a Prometheus server knows."
)
@click.option(
    "--job", default="neuron.*", show_default=True, help="With --prometheus: the scrape jobs to show."
)
@host_option
@tree_option
def dashboard(
    port: int,
    address: str,
    token_file: str | None,
    period: str,
    history: str,
    record: str | None,
    record_limit: int,
    prometheus_url: str | None,
    job: str,
    host_metrics: str,
    sysfs_root: str | None,
) -> None:
    """Show devices live in the browser, one machine's or a fleet's.

    The printed address carries a token without which nobody is answered.
    """
    token = read_token(token_file)
    require_token(address, token)
    from neuron_monitor.dashboard.server import serve

    stopped = threading.Event()
    if prometheus_url is not None:
        from neuron_monitor.dashboard.app import make_fleet_app
        from neuron_monitor.dashboard.fleet import FleetSource

        serve(make_fleet_app(FleetSource(prometheus_url, job)), address, port, token, stopped)
        return
    from neuron_monitor.commands.start import make_sampler
    from neuron_monitor.dashboard.app import make_local_app
    from neuron_monitor.dashboard.collector import Collector
    from neuron_monitor.dashboard.recording import Recording
    from neuron_monitor.report.config import parse_duration

    period_s = parse_duration(period)
    collector = Collector(
        make_sampler(sysfs_root, host_metrics), max(2, round(parse_duration(history) / period_s))
    )
    if record is not None:
        collector.recording = Recording(record, collector.history.columns, record_limit << 20)
    sampler = threading.Thread(target=collector.run, args=(period_s, stopped), name="sampler", daemon=True)
    sampler.start()
    try:
        serve(make_local_app(collector, period_s, socket.gethostname()), address, port, token, stopped)
    finally:
        stopped.set()
        sampler.join()  # it writes the rows that are not in a file yet
