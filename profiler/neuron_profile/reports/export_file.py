"""A profile in another format: which exporter writes it, and under which name by default."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from neuron_profile.reports.output_file import opened_output
from neuron_profile.reports.progress_bar import ProgressBar
from neuron_tools.profile import export
from neuron_tools.profile.export.formats import FORMATS, ExportFormat
from neuron_tools.profile.export.report import ExportReport
from neuron_tools.profile.reader import open_profile


def export_profile(path: str, output_format: str, destination: Path | None, *, force: bool) -> ExportReport:
    """Write a profile in another format.

    Args:
        path: The profile.
        output_format: Name of one of `FORMATS`, e.g. "perfetto".
        destination: File or folder to make; None for NAME.pftrace and the like in the working directory.
        force: Whether to overwrite it.

    Returns:
        What was written.

    Raises:
        UsageError: The destination exists and `force` is not given.
        NeuronToolsError: The profile cannot be read or the destination not be written.
    """
    chosen: ExportFormat = FORMATS.load(output_format)
    with open_profile(path) as profile:
        target = destination or Path(f"{profile.path.stem}{chosen.suffix}")
        with ProgressBar(f"Writing {target}") as progress:
            return chosen.export(profile, target, progress=progress, force=force)


def write_summary_json(paths: Sequence[str], destination: Path | None, *, force: bool) -> None:
    """Write the published metrics of profiles as one JSON object, by profile name; on one line to stdout.

    Programs that read standard output, as autotuners do AWS's tool's, look for a line that is JSON.
    """
    metrics = {}
    for path in paths:
        with open_profile(path) as profile:
            metrics.update(export.summary_metrics(profile))
    with opened_output(destination, force=force) as stream:
        stream.write((json.dumps(metrics, indent=2 if destination else None, default=str) + "\n").encode())
