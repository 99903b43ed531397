"""`neuron-profile tune`: the fastest version of a kernel that a search of its parameters finds."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command, json_option, timeout_option


@command(
    example="neuron-profile tune examples/nki/softmax.py:softmax_tunable\n"
    "neuron-profile tune kernels.py:softmax --space softmax.toml -o softmax.patch"
)
@click.argument("kernel", metavar="FILE.py:FUNCTION")
@click.option(
    "--space",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Values to try, as TOML (docs/tune.md).",
)
@click.option(
    "--candidates",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Versions to simulate at most; a smaller space is tried in full.",
)
@click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one for each CPU]")
@timeout_option(60, "Refuse a version that takes longer to run here.")
@click.option("--target", metavar="TEXT", help="Generation to simulate.  [default: trn2]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the search.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the best as a patch here."
)
@click.option("--apply", "write", is_flag=True, help="Write the best into the kernel's file.")
@json_option
def tune(
    kernel: str,
    space: Path | None,
    candidates: int,
    workers: int | None,
    timeout_s: float,
    target: str | None,
    seed: int,
    output: Path | None,
    write: bool,
    as_json: bool,
) -> None:
    """Search a kernel's parameters for the fastest version.

    Times are simulated. What may vary are keyword parameters annotated with Literal[...], and what --space
    names. A version that computes other values or breaks a rule of the hardware is refused. The kernel's code
    runs here, in processes of its own.
    """
    from neuron_profile.reports.progress_bar import ProgressBar
    from neuron_profile.reports.terminal import output_console
    from neuron_profile.tune import report
    from neuron_profile.tune.measurement import Candidate
    from neuron_profile.tune.patch import as_patch, patched_text
    from neuron_profile.tune.search import Settings, search
    from neuron_profile.tune.space import read_space

    named = Candidate.named(kernel)
    chosen = read_space(space, named)
    settings = Settings(candidates, workers, timeout_s, seed, target)
    with ProgressBar("Simulating candidates") as progress:
        outcome = search(named, chosen, settings, progress)
    if as_json:
        click.echo(report.as_json(outcome))
    else:
        report.print_outcome(output_console(), outcome)
    new = patched_text(outcome.best.candidate)
    patch = as_patch(named.path, new)
    if not patch:
        return
    if write:
        named.path.write_text(new)
        click.echo(f"Wrote the best into {named.path}.", err=True)
    elif output is not None:
        output.write_text(patch)
        click.echo(f"Wrote {output}: apply it with `patch -p1 < {output}`.", err=True)
    elif not as_json:
        click.echo(f"\n{patch}", nl=False)
