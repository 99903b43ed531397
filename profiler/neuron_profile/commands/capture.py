"""`neuron-profile capture`: runs a command on the simulated device and writes its profile."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuron_tools.command_line import choice_option, command

if TYPE_CHECKING:
    from neuron_profile.launch.recording import Recording
    from neuron_tools.capture.options import CaptureOptions, EagerFusion

DEFAULT_TARGET = "trn2"


@command(
    example=(
        "neuron-profile capture -- python train.py --epochs 1\n"
        "neuron-profile capture -o run.nprof --host-clock fixed -- python train.py\n"
        "neuron-profile capture --set hbm_bandwidth=2x -- python train.py\n"
        "neuron-profile capture -- train.ipynb\n"
        "neuron-profile capture --ranks 64 --target trn2.48xlarge -- torchrun --nproc_per_node 4 train.py\n"
        "neuron-profile capture --world-size 1024 --values skip -- python train.py\n"
        "neuron-profile capture --last 30s --when 'step > 3 * p99' -- python serve.py\n"
        "neuron-profile capture -n model.neff -s model.nprof --num-exec 3"
    ),
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder to write; must not exist. [NAME.nprof]"
)
@click.option(
    "--target",
    default=None,
    help=f"Generation or instance to simulate.  [default: {DEFAULT_TARGET}, or what FILE.neff is for]",
)
@choice_option(
    "--lnc", choices=["1", "2"],
    help="Physical cores of a logical NeuronCore, which share its work.  "
    "[default: $NEURON_LOGICAL_NC_CONFIG, or 2 where the generation has it]",
)  # fmt: skip
@choice_option(
    "--host-clock",
    choices=["measured", "fixed"],
    default="measured",
    help="How host time is counted; fixed makes captures reproducible.",
)
@choice_option(
    "--eager-fusion", choices=["auto", "on", "off"],
    help="Which eager operations run as one execution: auto, those that wait while the device is busy; on, "
    "also those for which it is free; off, none.  [default: $NEURON_TOOLS_EAGER_FUSION, or off]",
)  # fmt: skip
@choice_option(
    "--schedule", choices=["compiled", "written"],
    help="How NKI kernels run: compiled, as neuronx-cc would change them; written, in their own order with "
    "their own transfers.  [default: $NEURON_TOOLS_SCHEDULE, or compiled]",
)  # fmt: skip
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change a hardware figure. Repeatable."
)
@click.option(
    "--ranks",
    type=click.IntRange(min=2),
    help="Simulate a job of so many ranks; those that COMMAND starts stand for all of them.",
)
@click.option(
    "--world-size",
    type=click.IntRange(min=1),
    help="Run COMMAND as ranks of a job of so many of which few run: meshes and shards are the job's.",
)
@click.option(
    "--run-ranks",
    default="auto",
    show_default=True,
    metavar="RANKS",
    help="With --world-size: ranks that run, e.g. 0,128,256; auto: rank 0 and its pipeline's other stages.",
)
@click.option(
    "--tokens-per-step", type=click.IntRange(1), help="Tokens of all ranks in a step, for tokens/s."
)
@choice_option(
    "--values",
    choices=["computed", "skip"],
    default="computed",
    help="skip: shapes, memory and time alone. Device memory takes none of this machine's, and reads as 0.",
)
@choice_option(
    "--detail", choices=["instructions", "operations"],
    help="operations: leave out the tables of instructions and transfers, which are most of a large job's "
    "profile.  [default: operations with --values skip, else instructions]",
)  # fmt: skip
@click.option(
    "--host-samples/--no-host-samples",
    default=True,
    show_default=True,
    help="Sample what the host does, at no more than 2 % of its time; only with a measured clock.",
)
@click.option(
    "--last",
    metavar="TIME",
    help="Look back: keep the last e.g. 30s, and write them when a rule is met or a snapshot is asked for.",
)
@click.option(
    "--when",
    "rules",
    multiple=True,
    metavar="RULE",
    help="With --last: 'step > 50ms', 'latency > 3 * p99', 'device_memory > 12GiB'. Repeatable.  [error]",
)
@click.option(
    "-n", "--neff", type=click.Path(path_type=Path), help="Execute this compiled artifact, not a command."
)
@click.option(
    "-s",
    "--session-file",
    type=click.Path(path_type=Path),
    help="With -n: the profile to write, as -o. With --profile-nth-exec, NAME.ntff stands for a profile "
    "of each profiled execution, NAME_exec_N.ntff.",
)
@click.option("--num-exec", default=1, show_default=True, help="With -n: how often to execute it.")
@click.option(
    "--profile-nth-exec", default=1, show_default=True, help="With -n: profile every so manyth execution."
)
@click.argument("arguments", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def capture(
    output: Path | None,
    target: str | None,
    lnc: str | None,
    host_clock: str,
    eager_fusion: EagerFusion | None,
    schedule: str | None,
    settings: tuple[str, ...],
    ranks: int | None,
    world_size: int | None,
    run_ranks: str,
    tokens_per_step: int | None,
    values: str,
    detail: str | None,
    host_samples: bool,
    last: str | None,
    rules: tuple[str, ...],
    neff: Path | None,
    session_file: Path | None,
    num_exec: int,
    profile_nth_exec: int,
    arguments: tuple[str, ...],
) -> int:
    """Run COMMAND on the simulated device and write its profile.

    COMMAND keeps its input, output and exit status; Python processes that it starts are recorded too.
    What this prints goes to standard error. The folder is NAME.nprof after the script's name (then
    NAME-2.nprof, ...) unless -o names another. With -n a compiled artifact is executed instead.
    """
    if schedule:
        os.environ["NEURON_TOOLS_SCHEDULE"] = schedule
    asked = int(lnc) if lnc else None
    chosen = (asked, host_clock, settings)
    if neff is not None:
        from neuron_profile.launch.artifact import capture_artifact
        from neuron_profile.launch.destination import shown
        from neuron_tools.capture.artifact import Repetition

        repetition = Repetition(num_exec, profile_nth_exec)
        place = session_file or output
        directories = capture_artifact(neff, place, target, chosen, repetition, arguments)
        _print_summary(directories[-1])
        for path in map(shown, directories):
            click.echo(f"Profile: {path}  (open it with: neuron-profile view {path})", err=True)
        return 0
    if last is None and rules:
        raise click.UsageError("--when needs --last: how much to keep for the profile, e.g. --last 30s.")
    from neuron_tools.capture.options import CaptureOptions, eager_fusion_of
    from neuron_tools.hardware import chosen_lnc

    options = CaptureOptions(
        Path(),
        target or DEFAULT_TARGET,
        chosen_lnc(target or DEFAULT_TARGET, asked),
        host_clock,
        settings=settings,
        ranks=ranks or 0,
        world_size=world_size or 0,
        tokens_per_step=tokens_per_step or 0,
        values=values,
        detail=detail or ("operations" if values == "skip" else "instructions"),
        eager_fusion=eager_fusion or eager_fusion_of(os.environ),
        host_samples=host_samples,
    )
    if world_size is not None and ranks is not None:
        raise click.UsageError(
            "--ranks and --world-size cannot both be given: the one replicates the ranks that "
            "COMMAND starts, the other starts ranks of a larger job."
        )
    return _capture_command(output, options, arguments, run_ranks, (last, rules))


def _capture_command(
    output: Path | None,
    options: CaptureOptions,
    arguments: tuple[str, ...],
    run_ranks: str,
    look_back: tuple[str | None, tuple[str, ...]],
) -> int:
    from neuron_profile.launch.destination import default_name, find_destination, shown
    from neuron_profile.launch.job import rank_command
    from neuron_profile.launch.preflight import check
    from neuron_profile.launch.target_command import understand
    from neuron_tools.capture.options import simulated_core

    understood = understand(arguments)
    simulated_core(options)
    check(understood)
    name = default_name(understood.arguments, understood.script)
    directory = find_destination(output, name, Path.cwd()).absolute()
    options = replace(options, directory=directory)
    command = rank_command(understood.arguments, options, run_ranks)
    last, rules = look_back
    if last is not None:
        from neuron_profile.launch.look_back import look_back_over

        return look_back_over(command, options, last, rules)
    click.echo(f"neuron-profile: capturing on {options.target} (simulated) into {shown(directory)}", err=True)
    from neuron_profile.launch.recording import record

    return _report(record(understood.arguments, options, command), options)


def _report(recording: Recording, options: CaptureOptions) -> int:
    """Tell how it went; the exit status is the command's, or 1 where only the recording failed."""
    from neuron_profile.launch.destination import shown

    ending, path = recording.ending, shown(options.directory)
    click.echo(err=True)
    if recording.report is not None:
        _print_summary(options.directory)
        if options.world_size or options.tokens_per_step:
            _print_step(options.directory)
    if ending.left_running:
        click.echo(
            "neuron-profile: processes that the command started still run; they are cut off here.", err=True
        )
    if recording.failure is not None:
        click.echo(f"Error: {recording.failure}", err=True)
    if recording.report is None:
        _tell_of_recovery(options.directory)
    click.echo(f"Profile: {path}  (open it with: neuron-profile view {path})", err=True)
    return ending.exit_status or (1 if recording.failure is not None else 0)


def _tell_of_recovery(directory: Path) -> None:
    """A summary says it itself."""
    from neuron_tools.capture.recovery import recovery_notice

    notice = recovery_notice(directory)
    if notice is not None:
        click.echo(f"neuron-profile: {notice}", err=True)


def _print_step(directory: Path) -> None:
    """A job's step, of the ranks that ran."""
    from neuron_profile.analysis.job_step import measure_job_step
    from neuron_profile.reports.analysis_text import print_analysis
    from neuron_profile.reports.terminal import error_console
    from neuron_tools import open_profile

    with open_profile(directory) as profile:
        step = measure_job_step(profile)
    if step is not None:
        print_analysis(error_console(), step, len(step.ranks))


def _print_summary(directory: Path) -> None:
    """The profile is there even where its summary fails: that must not hide the command's exit status."""
    from neuron_profile.reports.summary_output import print_summaries
    from neuron_profile.reports.terminal import error_console
    from neuron_tools.errors import NeuronToolsError

    try:
        print_summaries([str(directory)], error_console())
    except NeuronToolsError as error:
        click.echo(f"Error: {error}", err=True)
