"""What `neuron-monitor` without a subcommand does, from its options."""

from __future__ import annotations

from typing import cast

from neuron_monitor.commands.start import make_pods, make_sampler
from neuron_monitor.commands.stream import reports, write_reports
from neuron_monitor.errors import ConfigurationError
from neuron_monitor.report.config import (
    DEFAULT_PERIOD_S,
    Configuration,
    default_configuration,
    parse_duration,
    read_configuration,
)
from neuron_monitor.report.sinks import SINKS
from neuron_monitor.report.spelling import Spelling


def run(
    *,
    config_file: str | None,
    period: str | None,
    count: int | None,
    extras: bool,
    sinks: tuple[str, ...],
    spelling: str,
    kubernetes: bool | None,
    host_metrics: str,
    sysfs_root: str | None,
    verbose: int | None,
) -> None:
    """Write reports until the reader is gone, or `count` of them."""
    configuration = choose_configuration(config_file, period, extras=extras)
    found = reports(
        make_sampler(sysfs_root, host_metrics),
        configuration,
        spelling=cast(Spelling, spelling),
        pods=make_pods(kubernetes),
    )
    write_reports(found, [SINKS.load(name)() for name in sinks], count)


def choose_configuration(path: str | None, period: str | None, *, extras: bool) -> Configuration:
    """The configuration of a file, or the default one in a period.

    Raises:
        ConfigurationError: The file or the period is not usable.
    """
    if path is None:
        seconds = DEFAULT_PERIOD_S if period is None else parse_duration(period)
        return default_configuration(seconds, with_ours=extras)
    if period is not None:
        raise ConfigurationError("--period is for running without a file: write it into the file instead.")
    return read_configuration(path)
