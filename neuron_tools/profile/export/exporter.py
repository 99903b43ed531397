"""What all exporters share: how they are called, and where what they write goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from inspect import cleandoc, getdoc
from pathlib import Path
from typing import Any, Protocol

from neuron_tools.profile.export.report import ExportReport, Progress
from neuron_tools.profile.export.source import ProfileSource


class Export(Protocol):
    """Writes a profile in one format."""

    def __call__(
        self,
        profile: ProfileSource,
        destination_path: str | Path,
        *,
        progress: Progress | None = None,
        force: bool = False,
        **options: bool,
    ) -> ExportReport:
        """Write the whole export, or nothing.

        Args:
            profile: The profile to export.
            destination_path: File or folder to make.
            progress: Told (rows done, rows in all) as the export goes.
            force: Whether to replace what exists.
            options: The format's own.

        Returns:
            The files, and what they hold, by kind.

        Raises:
            UsageError: The destination exists and `force` is False, or its folder does not exist.
            ExportError: It could not be written.
        """


Write = Callable[..., Mapping[str, int]]
"""`write(profile, destination, progress, **options)` fills a file or a folder, and counts what it wrote."""


def exporter(new: Callable[..., AbstractContextManager[Any]]) -> Callable[[Write], Export]:
    """Make a format's exporter of the function that only writes.

    Args:
        new: `new_file`, where `write` fills a binary stream, or `new_folder`, where it fills a folder.
    """

    def decorate(write: Write) -> Export:
        def export(
            profile: ProfileSource,
            destination_path: str | Path,
            *,
            progress: Progress | None = None,
            force: bool = False,
            **options: bool,
        ) -> ExportReport:
            path = Path(destination_path)
            with new(path, force=force) as destination:
                counts = write(profile, destination, progress, **options)
            return ExportReport(tuple(sorted(path.iterdir())) if path.is_dir() else (path,), counts)

        _, _, shared = (getdoc(Export.__call__) or "").partition("\n")
        export.__doc__ = f"{cleandoc(write.__doc__ or '')}\n{shared}"
        export.__name__ = export.__qualname__ = write.__name__
        export.__module__ = write.__module__
        return export

    return decorate
