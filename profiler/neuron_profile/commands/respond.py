"""`neuron-profile respond`: answers alerts with the line that causes them."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command, port_option
from neuron_tools.listening import read_token

DEFAULT_PORT = 9099
# Behind programs of ordinary priority, and ahead of what a busy host does in the background.
LEAST_NICE = 5


@command(
    example="neuron-profile respond --folder /var/lib/neuron-alerts\n"
    "neuron-profile respond --webhook https://chat.example/hook --grafana http://grafana:3000 "
    "--grafana-token-file token"
)
@port_option(DEFAULT_PORT, "0 = any.")
@click.option("--address", default="127.0.0.1", show_default=True, help="Beyond this machine, needs a token.")
@click.option("--token-file", metavar="FILE", help="Alerts must carry this file's text as bearer token.")
@click.option(
    "--folder", type=click.Path(path_type=Path, file_okay=False), default=Path("alerts"), show_default=True,
    help="Where profiles and alerts.jsonl go.",
)  # fmt: skip
@click.option("--webhook", default="", metavar="URL", help="Is sent each report as JSON.")
@click.option("--grafana", default="", metavar="URL", help="Gets an annotation for each report.")
@click.option("--grafana-token-file", metavar="FILE", help="Token of a service account of Grafana.")
@click.option("--pause", default="60s", show_default=True, help="Between two looks at one program.")
@click.option(
    "--keep", "most", type=click.IntRange(1), default=20, show_default=True, help="Profiles to keep."
)
def respond(
    port: int,
    address: str,
    token_file: str | None,
    folder: Path,
    webhook: str,
    grafana: str,
    grafana_token_file: str | None,
    pause: str,
    most: int,
) -> None:
    """Find the source line behind alerts, and report it.

    Takes alerts from Prometheus, its Alertmanager or `neuron-monitor watch`. Looks at programs that run under
    `neuron-profile capture --last TIME`: writes what they did in their last seconds as a profile, asks it for
    advice, and reports the first finding.
    """
    import os

    from neuron_profile.launch.alerts.responder import Responder
    from neuron_profile.launch.alerts.server import PATH, AlertServer
    from neuron_profile.launch.alerts.telling import Listeners
    from neuron_profile.launch.look_back import parse_time_ns

    listeners = Listeners(webhook, grafana, read_token(grafana_token_file) or "")
    os.nice(LEAST_NICE)  # the programs that are looked at come first
    folder.mkdir(parents=True, exist_ok=True)

    def say(line: str) -> None:
        click.echo(f"neuron-profile: {line}", err=True)

    responder = Responder(folder.absolute(), listeners, parse_time_ns(pause) / 1e9, most, say)
    with AlertServer(responder, address, port, read_token(token_file)) as server:
        click.echo(f"Alerts are taken at http://{address}:{server.server_address[1]}{PATH}", err=True)
        server.serve_forever()
