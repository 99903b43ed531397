"""`neuron-profile show`: what a compiled artifact is and what stands in it."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command, json_option


@command(example="neuron-profile show model.neff\nneuron-profile show model.neff --stablehlo")
@click.argument("artifact", metavar="FILE.neff", type=click.Path(path_type=Path))
@json_option
@click.option("--stablehlo", is_flag=True, help="Print the StableHLO it was compiled from.")
def show(artifact: Path, as_json: bool, stablehlo: bool) -> None:
    """Describe FILE.neff: target, tensors, instructions.

    It also lists source lines and warnings.
    """
    import json

    from neuron_profile.reports.artifact_text import print_artifact
    from neuron_profile.reports.terminal import output_console
    from neuron_tools.neff import read_neff

    neff = read_neff(artifact)
    if stablehlo:
        click.echo(neff.stablehlo)
    elif as_json:
        click.echo(json.dumps(neff.manifest, indent=2))
    else:
        print_artifact(output_console(), neff)
