"""What becomes of inputs that are damaged or hostile: every format that is read, and SQL.

`python -m benchmarks.untrusted KIND [--count 5000] [--seed 0] [--keep FILE]` tries one kind and prints its
findings; with `--keep` it goes on where that file says that it was, and `--json` prints what came of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.figures import Figure, Target
from benchmarks.untrusted_inputs.campaign import Outcome, campaign
from benchmarks.untrusted_inputs.child import QUERY_DEADLINE_S, SQL
from benchmarks.untrusted_inputs.readers import READERS

INPUTS, STATEMENTS = 5_000, 100_000
QUICK_INPUTS, QUICK_STATEMENTS = 20, 200
DEADLINE_S = 20.0
STARTING_A_PROCESS_S = 15.0
"""On a machine that others use too; a query that ended its process waits for the next one's start."""
INPUT_MEMORY_MIB = 2048
QUERY_MEMORY_MIB = 1024
MIB = 1 << 20


def run(quick: bool) -> list[Figure]:
    """Tries all kinds, a few of each if quick."""
    outcomes = [tried(kind, QUICK_INPUTS if quick else INPUTS) for kind in READERS]
    outcomes.append(tried(SQL, QUICK_STATEMENTS if quick else STATEMENTS))
    return [figure for outcome in outcomes for figure in _figures(outcome)]


def tried(kind: str, count: int, seed: int = 0, kept_in: Path | None = None) -> Outcome:
    """What came of so many inputs of one kind."""
    deadline_s = QUERY_DEADLINE_S + STARTING_A_PROCESS_S if kind == SQL else DEADLINE_S
    return campaign(kind, count, deadline_s, seed, kept_in=kept_in)


def _figures(outcome: Outcome) -> list[Figure]:
    kind, is_sql = outcome.kind, outcome.kind == SQL
    ended = f"of {outcome.tried:,}: {outcome.read:,} read, {outcome.refused:,} refused in a sentence"
    memory = outcome.children_bytes if is_sql else outcome.peak_bytes
    most = 1.1 * (QUERY_MEMORY_MIB if is_sql else INPUT_MEMORY_MIB)
    first = outcome.findings[0][:200] if outcome.findings else ""
    return [
        Figure(f"{kind}: findings", len(outcome.findings), "", Target("<=", 0), None, f"{ended}; {first}"),
        Figure(f"{kind}: slowest", outcome.slowest_s, "s", None, None, "by the clock"),
        Figure(f"{kind}: memory", memory / MIB, "MiB", Target("<=", most)),
    ]


def main() -> int:
    """Try one kind, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.untrusted", description=__doc__)
    parser.add_argument("kind", choices=[*READERS, SQL], metavar="KIND", help="one of: %(choices)s")
    parser.add_argument("--count", type=int, help=f"{INPUTS:,}, or {STATEMENTS:,} of {SQL}, if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="what was tried, to go on from there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    count = options.count or (STATEMENTS if options.kind == SQL else INPUTS)
    outcome = tried(options.kind, count, options.seed, options.keep)
    if options.json:
        print(json.dumps(asdict(outcome)))
    else:
        _print(outcome)
    return 1 if outcome.findings else 0


def _print(outcome: Outcome) -> None:
    for figure in _figures(outcome):
        print(f"{figure.name}: {figure.value:.4g} {figure.unit} ({figure.note})")
    for finding in outcome.findings:
        print(finding.encode("ascii", "backslashreplace").decode())


if __name__ == "__main__":
    sys.exit(main())
