"""How the cases of public repositories ended last, kept from run to run, and the table of their counts.

`docs/public-kernels.json` holds one entry per repository, snapshot and target: how many cases it has, how
each case that was reached ended, by a digest of its name, and the names and reasons of those that failed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from public_causes import cause_of

RECORD = Path(__file__).resolve().parent.parent / "docs/public-kernels.json"
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "refused": "refused by its own kernel",
    "expected": "failed, as the library expects",
    "skipped": "skipped",
}
"""How a case can end, and the heading of its column."""
_COLUMNS = {
    **OUTCOMES, "stopped": "out of time or memory", "mistaken": "failed by the repository's own mistake",
}  # fmt: skip
"""Those of the table, in which failures with a known cause stand apart."""
_SHOWN_CHARACTERS = 220
_TOLD = ("failed", "refused", "expected")


def add(
    record: dict[str, Any], run: str, cases: int, rows: Mapping[str, Mapping[str, object]]
) -> dict[str, Any]:
    """The record with the rows of a run; a case that was run before ended as it did last.

    Args:
        record: As of the file.
        run: Repository, snapshot and target: "nki-library 2.29 trn2".
        cases: Cases that it has.
        rows: How each case ended, by its name, with the message of a failure.
    """
    old = record.get(run, {"ended": {}, "reasons": {}})
    ended, reasons = dict(old["ended"]), dict(old["reasons"])
    for name, row in rows.items():
        outcome = str(row["outcome"])
        ended[_digest(name)] = outcome
        reasons.pop(name, None)
        if outcome in _TOLD:
            reasons[name] = reason(str(row["message"]))
    return {**record, run: {"cases": cases, "ended": ended, "reasons": reasons}}


def write(record: dict[str, Any], path: Path = RECORD) -> None:
    """Write a record, one case a line.

    Args:
        record: As of `add`.
        path: Its file.
    """
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")


def read(path: Path = RECORD) -> dict[str, Any]:
    """The record; empty where there is none.

    Args:
        path: Its file.
    """
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}


def table(record: Mapping[str, Any]) -> str:
    """Cases reached and how they ended, by repository, snapshot and target, and the reasons of failures.

    Args:
        record: As of `add`.
    """
    heads = (
        "repository, snapshot, target",
        "cases",
        "reached",
        *_COLUMNS.values(),
        "share passed",
    )
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    everything: Counter[str] = Counter()
    for run, kept in sorted(record.items()):
        count = _counts(run, kept)
        everything += count
        lines.append(_row(run, kept["cases"], count))
    lines.append(_row("all", sum(kept["cases"] for kept in record.values()), everything))
    return "\n".join([*lines, "", *_reasons(record)])


def _counts(run: str, kept: Mapping[str, Any]) -> Counter[str]:
    """How many cases of a run ended in each way; a failure with a known cause counts as that says."""
    count = Counter(kept["ended"].values())
    for name, told in kept["reasons"].items():
        cause = cause_of(run, name, told) if kept["ended"][_digest(name)] == "failed" else None
        if cause is not None:
            count["failed"] -= 1
            count[cause.outcome] += 1
    return count


def _row(run: str, cases: int, count: Counter[str]) -> str:
    can = count["passed"] + count["failed"]
    share = f"{count['passed'] / can:.1%}" if can else ""
    numbers = [cases, count.total(), *(count[outcome] for outcome in _COLUMNS)]
    return f"| {' | '.join([run, *(f'{number:,}' for number in numbers), share])} |"


def _reasons(record: Mapping[str, Any]) -> list[str]:
    lines = ["| cases | ended | repository, snapshot, target | message | cause |", "|---|---|---|---|---|"]
    for run, kept in sorted(record.items()):
        found = Counter(
            (
                kept["ended"][_digest(name)],
                told,
                cause.sentence if (cause := cause_of(run, name, told)) else "",
            )
            for name, told in sorted(kept["reasons"].items())
        )
        for (outcome, told, sentence), count in found.most_common():
            lines.append(f"| {count} | {outcome} | {run} | {told.replace('|', '/')} | {sentence} |")
    return lines


def reason(message: str) -> str:
    """A failure's message with its numbers, folders of files and callers left out.

    Args:
        message: Its first line that is not empty counts.
    """
    line = next((line.strip() for line in message.splitlines() if line.strip()), "")
    line = re.sub(r" \(called from [^()]*\)", "", line)
    line = re.sub(r"/\S+/(\S+?):\d+", r"\1", line)
    return re.sub(r"\d+(\.\d+)?", "N", line)[:_SHOWN_CHARACTERS]


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=5).hexdigest()
