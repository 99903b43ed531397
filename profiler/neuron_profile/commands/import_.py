"""`neuron-profile import`: traces of other tools become a profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuron_profile.engine_options import engine_options
from neuron_tools.command_line import cleaning_up_when_terminated, command, is_whole_process, json_option

if TYPE_CHECKING:
    from neuron_profile.analysis.ranks.spread import Engine


class LocalFile(click.Path):
    """A path of this machine, not an address, which would lose a slash as a path."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's, but refuses an address in words."""
        if "://" in str(value):
            self.fail(f"{value} is an address: download the trace, and import the file.", param, ctx)
        return super().convert(value, param, ctx)


@command(
    example=(
        "neuron-profile import trace.json.gz -o trace.nprof\n"
        "neuron-profile import rank*.pt.trace.json -o job.nprof\n"
        "neuron-profile import rank*.pt.trace.json -o profiles --engine dask --scheduler tcp://head:8786"
    )
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=LocalFile(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Profile to make; FILE.nprof by default."
)
@click.option("--force", is_flag=True, help="Replace the profile if it exists.")
@click.option(
    "--no-arguments", is_flag=True, help="Leave out the arguments of spans: a third faster, and smaller."
)
@engine_options
@json_option
def import_(
    files: tuple[Path, ...],
    output: Path | None,
    force: bool,
    no_arguments: bool,
    engine: str,
    scheduler: str | None,
    workers: int,
    as_json: bool,
) -> None:
    """Turn traces of other tools into a profile.

    FILE is what torch.profiler, JAX, Perfetto, Chrome, neuron-monitor or AWS's neuron-profile writes, packed
    with gzip or not, or a folder of Neuron Explorer's Parquet tables. The content tells the format.
    Several files become the ranks of one profile, on one clock where their clocks can be related. With an
    --engine other than local each becomes a profile of its own in the folder --output, which every worker
    reaches by the same path: neuron-profile ranks takes them.
    """
    from neuron_profile.analysis.ranks.spread import Engine
    from neuron_profile.reports import import_text
    from neuron_profile.reports.progress_bar import ProgressBar
    from neuron_tools.profile.importers import import_traces
    from neuron_tools.profile.lockdown.own_process import give_away_all_but

    where = Engine(engine, workers, scheduler)
    if engine != "local":
        _import_ranks(files, output, where, force=force, arguments=not no_arguments, as_json=as_json)
        return
    target = output or import_text.default_name(files)
    if is_whole_process():
        give_away_all_but([target.absolute().parent])
    with cleaning_up_when_terminated(), ProgressBar(f"Importing {target}") as progress:
        report = import_traces(files, target, progress=progress, force=force, arguments=not no_arguments)
    if as_json:
        click.echo(import_text.as_json(report))
    else:
        click.echo(import_text.as_text(report), err=True)


def _import_ranks(
    files: Sequence[Path], output: Path | None, engine: Engine, *, force: bool, arguments: bool, as_json: bool
) -> None:
    """Each file to a profile of its own below the folder, wherever the engine puts it."""
    from neuron_profile.analysis.ranks.imports import RankImport, import_ranks
    from neuron_profile.reports import import_text
    from neuron_profile.reports.progress_bar import ProgressBar

    folder = (output or Path()).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    imports = [
        RankImport(str(file.absolute()), str(folder / import_text.default_name([file])), arguments)
        for file in files
    ]
    with ProgressBar(f"Importing into {folder}") as progress:
        reports = import_ranks(imports, engine, force=force, progress=progress)
    for report in reports:
        click.echo(import_text.as_json(report) if as_json else import_text.as_text(report), err=not as_json)
