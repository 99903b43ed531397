"""`neuron-profile show-schema`: the tables and columns of profiles."""

from __future__ import annotations

import click

from neuron_tools.command_line import choice_option, command

FORMATS = ("text", "openapi", "json")


@command(example="neuron-profile show-schema Instruction\nneuron-profile show-schema --format openapi")
@click.argument("tables", metavar="[TABLE...]", nargs=-1)
@choice_option(
    "--format",
    "output_format",
    choices=FORMATS,
    default="text",
    help="openapi prints OpenAPI YAML, one schema per table.",
)
def show_schema(tables: tuple[str, ...], output_format: str) -> None:
    """Print the tables of profiles: columns, types, units.

    It also prints what each means. Without TABLEs, all tables are printed.
    """
    from neuron_profile.reports import schema_text
    from neuron_tools.profile.schema import TABLES, table_schema

    chosen = [table_schema(name) for name in tables] or list(TABLES.values())
    if output_format == "openapi":
        click.echo(schema_text.as_openapi(chosen), nl=False)
    elif output_format == "json":
        click.echo(schema_text.as_json(chosen))
    else:
        click.echo(schema_text.as_text(chosen), nl=False)
