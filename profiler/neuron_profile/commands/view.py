"""`neuron-profile view`: the Explorer, or the profile in another format."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command, port_option
from neuron_tools.profile.export.formats import FORMATS

DEFAULT_PORT = 3001


@command(
    example=(
        "neuron-profile view train.nprof\n"
        "neuron-profile view base.nprof new.nprof --no-browser\n"
        "neuron-profile view train.nprof --output-format summary-text\n"
        "neuron-profile view eager.nprof compiled.nprof --output-format summary-text\n"
        "neuron-profile view train.nprof --output-format perfetto --output-file train.pftrace\n"
        "neuron-profile view -n kernel.neff -s kernel.ntff --output-format summary-json"
    )
)
@click.argument("profiles", metavar="PROFILE...", nargs=-1)
@click.option(
    "-n", "--neff-path", type=click.Path(path_type=Path), help="The compiled artifact of which -s tells."
)
@click.option("-s", "--session-file", type=click.Path(path_type=Path),
              help="A profile that capture -n wrote, or the session file of nki.profile.")  # fmt: skip
@click.option(
    "--output-format",
    type=click.Choice(("summary-text", *FORMATS.names())),
    help="Write this instead of opening the Explorer.",
)
@click.option("--output-file", type=click.Path(path_type=Path), help="File or folder to write.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@port_option(DEFAULT_PORT, "Port of the Explorer.")
@click.option("--browser/--no-browser", default=True, help="Open the Explorer in the browser.")
def view(
    profiles: tuple[str, ...],
    neff_path: Path | None,
    session_file: Path | None,
    output_format: str | None,
    output_file: Path | None,
    force: bool,
    port: int,
    browser: bool,
) -> None:
    """Open PROFILE in the Explorer, or write it in another format.

    The text summary and the JSON summary go to standard output unless --output-file names a file; two
    profiles are summarised side by side. With -n and -s, as AWS's tool has them, that session is shown.
    """
    from neuron_profile.launch.session import session_profile

    if not profiles and session_file is None and neff_path is None:
        raise click.UsageError("Name a PROFILE to view, or a session with -n FILE.neff -s FILE.ntff.")
    with session_profile(neff_path, session_file) as session:
        shown = (*profiles, *session)
        if output_format == "summary-text":
            _write_summary_text(shown, output_file, force=force)
            return
        for profile in shown:
            _tell_of_recovery(profile)
        if output_format is None:
            _serve(shown, port, browser=browser)
        else:
            _export(shown, output_format, output_file, force=force)


def _tell_of_recovery(profile: str) -> None:
    """The text summary says it itself."""
    from neuron_tools.capture.recovery import recovery_notice

    notice = recovery_notice(Path(profile))
    if notice is not None:
        click.echo(f"neuron-profile: {profile}: {notice}", err=True)


def _export(profiles: tuple[str, ...], output_format: str, output_file: Path | None, *, force: bool) -> None:
    from neuron_profile.reports.export_file import export_profile, write_summary_json

    if output_format == "summary-json":
        write_summary_json(profiles, output_file, force=force)
        return
    if len(profiles) != 1:
        raise click.UsageError(f"--output-format {output_format} takes one profile.")
    report = export_profile(profiles[0], output_format, output_file, force=force)
    written = report.paths[0].parent if len(report.paths) > 1 else report.paths[0]
    contents = ", ".join(
        f"{number:,} {kind.replace('_', ' ')}" for kind, number in report.counts.items() if number
    )
    click.echo(f"Wrote {written}: {contents or 'nothing to show'}.", err=True)


def _serve(profiles: tuple[str, ...], port: int, *, browser: bool) -> None:
    from neuron_tools.errors import NeuronToolsError

    try:
        from neuron_explorer.server import Place, serve
    except ModuleNotFoundError as error:
        raise NeuronToolsError(
            f"The Explorer needs the package '{error.name}': install it with "
            "'python -m pip install \"neuron-tools[explorer]\"', or use --output-format summary-text."
        ) from error
    serve(profiles, Place(port), open_browser=browser)


def _write_summary_text(profiles: tuple[str, ...], output_file: Path | None, *, force: bool) -> None:
    from neuron_profile.reports.output_file import opened_output
    from neuron_profile.reports.summary_output import write_summaries

    with opened_output(output_file, force=force) as stream:
        write_summaries(profiles, stream)
