#!/usr/bin/env python3
"""Coverage-guided fuzzing of every importer: `scripts/fuzz_importers.py [--seconds 60] [--corpus FOLDER]`.

Begins with a small trace of each format that is read, and changes those that reach new code. An importer may
refuse a file in one sentence. Anything else that is raised, a hang of 20 s and more than 2 GiB of memory are
findings: the input is left in the corpus as `crash-...`, and the exit status is not 0.
`scripts/fuzz_importers.py FILE` tries an input again.

Needs atheris (`pip install atheris`; Linux, Python 3.11 to 3.13). The default tests use hypothesis instead.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILED = (
    "footer_kernel", "importers.json_decode", "importers.json_scan", "importers.protobuf_scan",
    "importers.span_pairs",
)  # fmt: skip
MEMORY_LIMIT_MIB = 2048


def reader(folder: Path) -> Callable[[bytes], None]:
    """Reads one input as far as staging its rows: writing them is the same for all formats.

    Args:
        folder: Where files are made.
    """
    import atheris

    for name in COMPILED:  # compiled functions must not be instrumented: loaded before, they stay as they are
        importlib.import_module(f"neuron_tools.profile.{name}")
    with atheris.instrument_imports(include=["neuron_tools.profile.importers"]):
        from neuron_tools.profile.importers import formats
        from neuron_tools.profile.importers.assemble import track_numbers
        from neuron_tools.profile.importers.recording import Recording
        from neuron_tools.profile.importers.trace_file import TraceFile

        formats.formats()
    from neuron_tools.errors import NeuronToolsError

    def read_one(content: bytes) -> None:
        (folder / "trace").write_bytes(content)
        try:
            file = TraceFile(folder / "trace")
            found = formats.recognise(file)
            recording = Recording(file.path, found.NAME, folder)
            try:
                found.read(file, recording)
            finally:
                recording.finish()
            track_numbers(recording)
            for table, count in recording.row_counts.items():
                if sum(batch.num_rows for batch in recording.batches(table)) != count:
                    raise ValueError(f"Rows of {table} were lost.")
        except NeuronToolsError as error:
            if "\n" in str(error):
                raise ValueError("The error is more than one sentence.") from error

    return read_one


def write_seeds(corpus: Path) -> None:
    """A small trace of each format."""
    from tests.fixtures.foreign_traces import all_traces

    corpus.mkdir(parents=True, exist_ok=True)
    for name, content in all_traces().items():
        (corpus / name.replace("/", "-").replace(" ", "-")).write_bytes(content)


def main() -> None:
    """Fuzzes until the time is over or there is a finding."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60, help="how long (default 60)")
    parser.add_argument("--corpus", type=Path, help="folder of inputs, kept; a temporary one if not given")
    parser.add_argument("input", nargs="*", help="inputs to try once, in place of fuzzing")
    options = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        sys.exit("fuzz_importers: atheris is missing: python -m pip install atheris (Python 3.11 to 3.13)")
    sys.path.insert(0, str(ROOT))
    import atheris

    folder = Path(tempfile.mkdtemp(prefix="neuron-fuzz-"))
    corpus = options.corpus or folder / "corpus"
    arguments = [sys.argv[0], *options.input]
    if not options.input:
        write_seeds(corpus)
        arguments += [str(corpus), f"-max_total_time={options.seconds}", f"-artifact_prefix={corpus}/"]
    arguments += ["-timeout=20", f"-rss_limit_mb={MEMORY_LIMIT_MIB}", "-max_len=65536"]
    atheris.Setup(arguments, reader(folder))
    try:
        atheris.Fuzz()
    finally:
        if options.corpus is not None or options.input:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
