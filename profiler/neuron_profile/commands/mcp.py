"""`neuron-profile mcp`: profiles for agents, over the Model Context Protocol."""

from __future__ import annotations

import click

from neuron_tools.command_line import command


@command(example="neuron-profile mcp train.nprof\nneuron-profile mcp runs/")
@click.argument("profiles", metavar="[PROFILE_OR_FOLDER...]", nargs=-1)
def mcp(profiles: tuple[str, ...]) -> None:
    """Answer an agent's questions about PROFILEs over standard input and output.

    An editor or agent starts this command and speaks the Model Context Protocol with it. In a folder,
    profiles are found as they are made; without arguments, in the working directory. Nothing is sent anywhere
    else, and no other path can be asked about.
    """
    from neuron_explorer.library import ProfileLibrary
    from neuron_profile.agents.server import make_server
    from neuron_profile.agents.tools import Tools

    with ProfileLibrary(profiles or (".",)) as library:
        make_server(Tools(library)).run("stdio")
