"""`neuron-profile scale`: what layouts of a large job take, and which of them are worth it."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_tools.command_line import command, json_option


class _Numbers(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """ "4,8" as (4, 8)."""

    name = "N,N,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        try:
            numbers = tuple(int(each) for each in str(value).split(","))
        except ValueError:
            self.fail(f"{value} is no number, and no numbers with commas between.", param, ctx)
        if min(numbers) < 1:
            self.fail(f"{value}: degrees begin at 1.", param, ctx)
        return numbers


@command(
    example="neuron-profile scale --dp 128,64 --tp 8,16 -- python train.py --tensor-parallel {tp}\n"
    "neuron-profile scale --dp 16 --pp 4,8 --tokens-per-step 1048576 -- python train.py --stages {pp}",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
@click.option(
    "--dp", type=_Numbers(), default="1", help="Degrees of data parallelism, replicated or sharded."
)
@click.option("--tp", type=_Numbers(), default="1", help="Degrees of tensor parallelism.")
@click.option("--pp", type=_Numbers(), default="1", help="Degrees of pipeline parallelism.")
@click.option("--cp", type=_Numbers(), default="1", help="Degrees of context parallelism.")
@click.option(
    "--ep", type=_Numbers(), default="1", help="Degrees of expert parallelism, within the ranks of a stage."
)
@click.option("--target", default="trn2", show_default=True, help="Generation or instance to simulate.")
@click.option(
    "--tokens-per-step", type=click.IntRange(1), help="Tokens of all ranks in a step, for tokens/s."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("scale"),
    show_default=True,
    help="Folder for a profile of each layout; layouts that stand there already are not run again.",
)
@json_option
@click.argument("arguments", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def scale(
    dp: tuple[int, ...],
    tp: tuple[int, ...],
    pp: tuple[int, ...],
    cp: tuple[int, ...],
    ep: tuple[int, ...],
    target: str,
    tokens_per_step: int | None,
    output: Path,
    as_json: bool,
    arguments: tuple[str, ...],
) -> None:
    """Compare parallel layouts of COMMAND by time, memory, cost.

    COMMAND runs in each layout, without values; the figures are of one step. In COMMAND {dp}, {tp}, {pp},
    {cp}, {ep} and {ranks} stand for the layout's degrees. Experts are shared among the ranks that the other
    degrees make: --ep adds none. Of each layout only the ranks that differ run, as with `capture --world-size
    --values skip`. On the front is what no other layout beats in time, memory and cost at once.
    """
    from neuron_profile.analysis.layouts import layouts, with_front
    from neuron_profile.launch.sweep import measure_layout
    from neuron_profile.launch.target_command import understand
    from neuron_profile.reports import analysis_text
    from neuron_profile.reports.terminal import output_console

    understood = understand(arguments).arguments
    chosen = layouts({"pp": pp, "dp": dp, "cp": cp, "tp": tp, "ep": ep})
    for each in chosen:
        each.fill(understood)
    results = with_front(measure_layout(each, understood, target, output, tokens_per_step) for each in chosen)
    if as_json:
        click.echo(analysis_text.as_json("scale", results))
    else:
        analysis_text.print_analysis(output_console(), results, len(results))
