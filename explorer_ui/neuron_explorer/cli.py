"""The `neuron-explorer` command."""

from __future__ import annotations

import sys

import click

from neuron_tools.command_line import command, port_option, run
from neuron_tools.errors import UsageError
from neuron_tools.listening import read_token

DEFAULT_PORT = 3001


@command(
    example=(
        "neuron-explorer train.nprof\n"
        "neuron-explorer base.nprof new.nprof\n"
        "neuron-explorer ~/profiles -p 8080 --no-browser\n"
        "neuron-explorer /profiles --address 0.0.0.0 --token-file /run/token/token"
    )
)
@click.argument("paths", metavar="[PROFILE_OR_FOLDER]...", nargs=-1)
@port_option(DEFAULT_PORT, "0 = any free port.")
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="Beyond this machine, needs a token file."
)
@click.option("--token-file", metavar="FILE", help="The token of the address, instead of a new one.")
@click.option(
    "--public-origin",
    "origins",
    metavar="URL",
    multiple=True,
    help="Where a proxy shows the Explorer, such as https://explorer.example; may be given again.",
)
@click.option("--read-only", is_flag=True, help="Take in, remove and remember nothing.")
@click.option(
    "--user-header",
    metavar="NAME",
    default="",
    help="Where a proxy that has the token names the user, such as X-Forwarded-User.",
)
@click.option("--sign-in", metavar="FILE", help="TOML that says where users sign in with OpenID Connect.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the browser.")
def neuron_explorer(
    paths: tuple[str, ...],
    port: int,
    address: str,
    token_file: str | None,
    origins: tuple[str, ...],
    read_only: bool,
    user_header: str,
    sign_in: str | None,
    browser: bool,
) -> None:
    """Show profiles in the browser, on this machine only unless an address is given.

    Without a PROFILE_OR_FOLDER the profiles in the current folder are shown. The printed address carries a
    token without which the Explorer answers nobody.
    """
    from neuron_explorer.server import Place, serve

    if user_header and (sign_in or not token_file):
        raise UsageError("--user-header needs --token-file, whose token the proxy sends, and no --sign-in.")
    shown = tuple(origin.rstrip("/") for origin in origins)
    token = read_token(token_file)
    place = Place(port, address, token, shown, read_only, user_header, sign_in)
    serve(paths or (".",), place, open_browser=browser)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(neuron_explorer, "neuron-explorer", sys.argv[1:]))


if __name__ == "__main__":
    main()
