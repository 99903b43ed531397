"""The `neuron-explorer` command."""

from __future__ import annotations

import sys

import click

from neuron_tools.command_line import command, run

DEFAULT_PORT = 3001


@command(
    example=(
        "neuron-explorer train.nprof\n"
        "neuron-explorer base.nprof new.nprof\n"
        "neuron-explorer ~/profiles -p 8080 --no-browser"
    )
)
@click.argument("paths", metavar="[PROFILE_OR_FOLDER]...", nargs=-1)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="0 = any free port.",
)
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the browser.")
def neuron_explorer(paths: tuple[str, ...], port: int, browser: bool) -> None:
    """Show profiles in the browser, on this machine only.

    Without a PROFILE_OR_FOLDER the profiles in the current folder are shown. The printed address carries a
    token without which the Explorer answers nobody.
    """
    from neuron_explorer.server import serve

    serve(paths or (".",), port, open_browser=browser)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(neuron_explorer, "neuron-explorer", sys.argv[1:]))


if __name__ == "__main__":
    main()
