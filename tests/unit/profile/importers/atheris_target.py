"""Coverage-guided fuzzing of every importer, as a program: `python atheris_target.py CORPUS -runs=N`.

An importer may refuse a file in one sentence; anything else that is raised is a finding.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import atheris

# Compiled functions must not be instrumented: loaded before, they stay as they are.
import neuron_tools.profile.importers.json_decode
import neuron_tools.profile.importers.json_scan
import neuron_tools.profile.importers.protobuf_scan
import neuron_tools.profile.importers.span_pairs  # noqa: F401

with atheris.instrument_imports(include=["neuron_tools.profile.importers"]):
    from neuron_tools.profile.importers import formats
    from neuron_tools.profile.importers.assemble import track_numbers
    from neuron_tools.profile.importers.recording import Recording
    from neuron_tools.profile.importers.trace_file import TraceFile

    formats.formats()

from neuron_tools.errors import NeuronToolsError

FOLDER = Path(tempfile.mkdtemp(prefix="neuron-fuzz-"))


def read_one(content: bytes) -> None:
    """Reads one file as far as staging it; writing is the same for all formats."""
    (FOLDER / "trace").write_bytes(content)
    try:
        file = TraceFile(FOLDER / "trace")
        found = formats.recognise(file)
        recording = Recording(file.path, found.NAME, FOLDER)
        try:
            found.read(file, recording)
        finally:
            recording.finish()
        track_numbers(recording)
        for table in recording.row_counts:
            assert sum(batch.num_rows for batch in recording.batches(table)) == recording.row_counts[table]
    except NeuronToolsError as error:
        if "\n" in str(error):
            raise ValueError("The error is more than one sentence.") from error


def main() -> None:
    """Runs until the given number of inputs has been tried or one is a finding."""
    atheris.Setup(sys.argv, read_one)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
