"""`neuron-profile mcp`: profiles for agents, over the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuron_tools.command_line import command

if TYPE_CHECKING:
    from neuron_profile.agents.kernels import KernelTools


@command(example="neuron-profile mcp train.nprof\nneuron-profile mcp runs/ --port 3020")
@click.argument("profiles", metavar="[PROFILE_OR_FOLDER...]", nargs=-1)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Serve over HTTP on this port of the loopback interface; 0 takes any that is free.",
)
@click.option(
    "--run-kernels",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Let the agent measure and tune NKI kernels of files in FOLDER, which runs their code.",
)
@click.option("--token-file", metavar="FILE", help="The token that requests carry, instead of a new one.")
def mcp(
    profiles: tuple[str, ...], port: int | None, folders: tuple[Path, ...], token_file: str | None
) -> None:
    """Answer an agent's questions about PROFILEs, over MCP.

    An editor or agent starts this command and speaks the Model Context Protocol with it. With --port it is
    served over HTTP instead, to programs of this machine that send the printed token. In a folder, profiles
    are found as they are made; without arguments, in the working directory. Nothing is sent anywhere else,
    and no other path can be asked about.
    """
    from neuron_explorer.library import ProfileLibrary
    from neuron_profile.agents.server import make_server
    from neuron_profile.agents.tools import Tools
    from neuron_tools.listening import read_token

    if port is None and token_file is not None:
        raise click.UsageError("--token-file is for HTTP: give --port too.")
    with ProfileLibrary(profiles or (".",)) as library:
        server = make_server(Tools(library), _kernel_tools(folders))
        if port is None:
            server.run("stdio")
            return
        from neuron_profile.agents.http import serve

        serve(server, port, read_token(token_file))


def _kernel_tools(folders: tuple[Path, ...]) -> KernelTools | None:
    if not folders:
        return None
    from neuron_profile.agents.kernels import KernelTools

    return KernelTools(folders)
