#!/usr/bin/env python3
"""Coverage-guided fuzzing of what is read of others: `scripts/fuzz.py [KIND ...] [--seconds N]`.

Each kind begins with sound examples (a trace of each format, a profile, its index and programs, an artifact,
a capture's log, requests to the Explorer, the tree that the monitor reads), and changes those that reach new
code, in a process and for a share of the time. What is read may be refused in one sentence. Anything else
that is raised, an answer 500, a hang of 20 s and more than 2 GiB of memory are findings: the input is left in
the corpus as `crash-...`, and the exit status is not 0. A corpus that is kept grows from run to run.

`scripts/fuzz.py KIND --input FILE` tries an input again. Needs atheris (`pip install atheris`; Linux, Python
3.11 to 3.13). The default tests use hypothesis, and inputs damaged from seeds, instead.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("neuron_tools", "profiler/neuron_profile", "monitor/neuron_monitor", "explorer_ui/neuron_explorer")
TRACES = "traces"
INSTRUMENTED = {
    TRACES: "neuron_tools.profile.importers",
    "artifact (.neff)": "neuron_tools.neff",
    "capture log": "neuron_tools.capture",
    "profile": "neuron_tools.profile",
    "timeline index": "neuron_tools.profile.timeline",
    "profile's programs": "neuron_profile.analysis",
    "HTTP request": "neuron_explorer",
    "monitor's tree": "neuron_monitor",
}
"""The package of each kind whose branches lead the search."""
MEMORY_LIMIT_MIB = 2048
DEADLINE_S = 20
LONGEST_BYTES = 1 << 16
LONGEST_SHOWN = 2000
MOST_PLACES = 256  # as many as a byte can name

ReadOne = Callable[[bytes], None]


def load_compiled() -> None:
    """Import all modules that numba compiles: instrumented, they could not be."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if re.search(r"^from neuron_tools.compiled ", file.read_text(), re.MULTILINE):
                parts = file.relative_to(ROOT / folder).with_suffix("").parts
                importlib.import_module(".".join([Path(folder).name, *parts]))


def trace_reader(folder: Path) -> ReadOne:
    """Reads one trace as far as staging its rows: writing them is the same for all formats."""
    from neuron_tools.profile.importers import formats
    from neuron_tools.profile.importers.assemble import track_numbers
    from neuron_tools.profile.importers.recording import Recording
    from neuron_tools.profile.importers.trace_file import TraceFile

    formats.formats()

    def read_one(content: bytes) -> None:
        (folder / "trace").write_bytes(content)
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

    return read_one


def example_reader(kind: str, folder: Path) -> tuple[ReadOne, list[bytes]]:
    """Reads an example of which one file has other content, named by the input's first byte.

    Returns:
        What reads, and the inputs that leave the example as it is.
    """
    from benchmarks.untrusted_inputs.readers import READERS

    reader, sound, made = READERS[kind], folder / "sound", folder / "made"
    for place in (sound, made):
        place.mkdir(parents=True)
        reader.make(place)
    places = reader.places(made)[:MOST_PLACES]
    seeds = [bytes([number]) + place.read_bytes() for number, place in enumerate(places)]
    reader.read(made, made)
    reader.mend(made, places[0], sound)

    def read_one(content: bytes) -> None:
        spoilt = places[(content or b"\0")[0] % len(places)]
        spoilt.parent.mkdir(parents=True, exist_ok=True)
        spoilt.write_bytes(content[1:])
        try:
            reader.read(made, spoilt)
        finally:
            reader.mend(made, spoilt, sound)

    return read_one, seeds


def in_a_sentence(read_one: ReadOne) -> ReadOne:
    """Reads, where one sentence may refuse what is read."""
    from neuron_tools.errors import NeuronToolsError

    def read(content: bytes) -> None:
        try:
            read_one(content)
        except NeuronToolsError as error:
            if "\n" in str(error):
                raise ValueError("The error is more than one sentence.") from error

    return read


def prepare(kind: str, folder: Path, corpus: Path) -> ReadOne:
    """What reads an input of a kind; its sound examples are put into the corpus."""
    import atheris

    load_compiled()
    with atheris.instrument_imports(include=[INSTRUMENTED[kind]], enable_loader_override=False):
        if kind == TRACES:
            from tests.fixtures.foreign_traces import all_traces

            read_one, seeds = trace_reader(folder), list(all_traces().values())
        else:
            read_one, seeds = example_reader(kind, folder)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"sound-{number:03}").write_bytes(seed)
    return in_a_sentence(read_one)


def fuzz(kind: str, seconds: int, corpus: Path, again: Sequence[str]) -> None:
    """Fuzz one kind in this process until the time is over or there is a finding."""
    import atheris

    with tempfile.TemporaryDirectory(prefix="neuron-fuzz-") as folder:
        read_one = prepare(kind, Path(folder), corpus)
        places = again or [str(corpus), f"-max_total_time={seconds}", f"-artifact_prefix={corpus}/"]
        limits = [f"-timeout={DEADLINE_S}", f"-rss_limit_mb={MEMORY_LIMIT_MIB}", f"-max_len={LONGEST_BYTES}"]
        atheris.Setup([sys.argv[0], *places, *limits], read_one)
        atheris.Fuzz()


def fuzz_all(kinds: Sequence[str], seconds: int, corpus: Path) -> int:
    """Fuzz kinds one after the other, each in a process of its own.

    Returns:
        How many kinds have a finding.
    """
    findings = 0
    for kind in kinds:
        share, place = max(1, seconds // len(kinds)), corpus / re.sub(r"\W+", "-", kind)
        command = [sys.executable, __file__, kind, "--seconds", str(share), "--corpus", str(place), "--alone"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        tried = re.findall(r"^(?:#|Done )(\d+)", done.stderr, re.M)
        ended = "nothing found" if done.returncode == 0 else f"a finding in {place}"
        print(f"{kind}: {int(tried[-1]) if tried else 0:,} inputs in {share} s, {ended}", flush=True)
        if done.returncode:
            findings += 1
            print(done.stderr[-LONGEST_SHOWN:], file=sys.stderr)
    return findings


def main() -> None:
    """Fuzz the kinds that are named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"one of: {', '.join(INSTRUMENTED)}")
    parser.add_argument("--seconds", type=int, default=3600, help="how long in all (default 3600)")
    parser.add_argument("--corpus", type=Path, help="folder of inputs, kept; a temporary one if not given")
    parser.add_argument("--input", action="append", default=[], metavar="FILE", help="an input to try again")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    kinds = options.kinds or list(INSTRUMENTED)
    if unknown := set(kinds) - set(INSTRUMENTED):
        parser.error(f"there is no kind {sorted(unknown)[0]!r}: choose from {', '.join(INSTRUMENTED)}")
    if importlib.util.find_spec("atheris") is None:
        sys.exit("fuzz: atheris is missing: python -m pip install atheris (Python 3.11 to 3.13)")
    sys.path.insert(0, str(ROOT))
    corpus = options.corpus or Path(tempfile.mkdtemp(prefix="neuron-corpus-"))
    if options.alone or options.input:
        fuzz(kinds[0], options.seconds, corpus, options.input)
    else:
        sys.exit(min(fuzz_all(kinds, options.seconds, corpus), 1))


if __name__ == "__main__":
    main()
