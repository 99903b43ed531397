#!/usr/bin/env python3
"""Runs TorchNeuron's own tests on the simulated device and counts how they end.

python scripts/torchneuron_tests.py                       all folders
python scripts/torchneuron_tests.py views distributed     some

`TORCHNEURON_TESTS` names a checkout; nothing is fetched. Each folder of its `tests` runs in one pytest
process, unchanged, on trn2 with eight NeuronCores and no capture; `--results` keeps pytest's report of each,
and what is there already is counted, not run again. Printed are a row for each folder and, most frequent
first, what the failed ones end with. The exit status is 1 where a folder could not be run.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from neuron_tools.frozen import frozen

FOLDER = "TORCHNEURON_TESTS"
ENVIRONMENT = {"NEURON_RT_NUM_CORES": "8", "OMP_NUM_THREADS": "1"}
COMMAND = (sys.executable, "-m", "neuron_tools", "--target", "trn2", "-m", "pytest")
OPTIONS = ("-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--tb=line")
HEADER = "| tests | passed | failed | skipped | modules not imported |\n|---|---|---|---|---|"
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


@frozen
class Report:
    """How the cases of a folder ended.

    Attributes:
        passed: Also those that failed as they were expected to.
        not_imported: Test modules whose import failed.
        messages: Of the failed and of the modules not imported: their first lines, numbers left out.
    """

    passed: int
    failed: int
    skipped: int
    not_imported: int
    messages: Counter[str]

    def row(self, name: str) -> str:
        """As a row of Markdown's tables."""
        return f"| {name} | {self.passed:,} | {self.failed} | {self.skipped} | {self.not_imported} |"


def read_report(path: Path) -> Report:
    """Count what a report of pytest's (`--junitxml`) holds.

    Args:
        path: Of the report.
    """
    ended: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    for case in ElementTree.parse(path).iter("testcase"):
        kind, message = _ending(case)
        ended[kind] += 1
        if kind in ("failed", "not imported"):
            messages[message] += 1
    return Report(ended["passed"], ended["failed"], ended["skipped"], ended["not imported"], messages)


def _ending(case: ElementTree.Element) -> tuple[str, str]:
    for element in case:
        if element.tag == "skipped":
            return ("passed" if element.get("type") == "pytest.xfail" else "skipped"), ""
        if element.tag in ("failure", "error"):
            text = element.get("message", "")
            is_import = text.startswith("collection failure")
            return ("not imported" if is_import else "failed"), _first_line(element, text)
    return "passed", ""


def _first_line(element: ElementTree.Element, text: str) -> str:
    said = [line[1:].strip() for line in (element.text or "").splitlines() if line.startswith("E ")]
    return _NUMBER.sub("N", (said or text.splitlines() or [""])[0])[:160]


def run(checkout: Path, name: str, report: Path, seconds: int) -> None:
    """Run the tests of one folder; a report is there where pytest came to its end, or was stopped in time."""
    asked = [*COMMAND, *OPTIONS, f"--junitxml={report}", f"tests/{name}"]
    process = subprocess.Popen(asked, cwd=checkout, env={**os.environ, **ENVIRONMENT})
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest writes what it has
        process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the folders, and print how their cases ended.

    Returns:
        0 where each folder has a report, 1 where one has none, 2 where the checkout or a folder is absent.
    """
    options = _options().parse_args(arguments)
    checkout = Path(os.environ.get(FOLDER, ""))
    if FOLDER not in os.environ or not (checkout / "tests").is_dir():
        print(f"Set {FOLDER} to a checkout of TorchNeuron: a folder that holds its tests.")
        return 2
    names = options.names or sorted(path.name for path in (checkout / "tests").iterdir() if path.is_dir())
    if absent := [name for name in names if not (checkout / "tests" / name).exists()]:
        print(f"{checkout / 'tests'} has no {', '.join(absent)}: name what lies there.")
        return 2
    options.results.mkdir(parents=True, exist_ok=True)
    reports = {name: options.results.resolve() / f"{name.replace('/', '.')}.xml" for name in names}
    for name, path in reports.items():
        if not path.is_file():
            run(checkout, name, path, options.timeout)
    found = {name: read_report(path) for name, path in reports.items() if path.is_file()}
    print(scoreboard(found))
    for name in reports.keys() - found.keys():
        print(f"{name}: pytest ended without a report; what it said last stands above.")
    return 0 if len(found) == len(reports) else 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="folders below `tests`; all without any")
    parser.add_argument(
        "--results", type=Path, default=Path("torchneuron_tests"), help="folder of the reports"
    )
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a folder may take")
    return parser


def scoreboard(reports: dict[str, Report]) -> str:
    """The counts, and what the failed cases end with.

    Args:
        reports: By the name of the folder.
    """
    rows = [
        report.row(name)
        for name, report in reports.items()
        if report.passed or report.failed or report.skipped
    ]
    messages = sum((report.messages for report in reports.values()), Counter[str]())
    causes = [f"{count:6} {message}" for message, count in messages.most_common()]
    return "\n".join([HEADER, *rows, "", *causes])


if __name__ == "__main__":
    sys.exit(main())
