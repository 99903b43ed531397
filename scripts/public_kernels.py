"""Run the tests of a fetched checkout of nki-library on the simulated device and print a scoreboard.

    NEURON_TOOLS_PUBLIC_CODE=~/public python scripts/public_kernels.py --sample 100 --seed 1

The folder holds checkouts under their names (`nki-library`). Cases are collected once per platform and
sampled with the seed; each has a time and a memory limit. Results go to `--results` line by line, so that a
run that was stopped goes on where it ended. pytest and the library's own test requirements must be installed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import public_kernels_plugin as plugin

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "NEURON_TOOLS_PUBLIC_CODE"
_SEED = "0"  # of the library's own choice of parameters


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sample and print its scoreboard.

    Returns:
        0 where every case passed or was skipped, 1 otherwise, 2 where there is no checkout.
    """
    options = _options().parse_args(arguments)
    checkout = Path(os.environ.get(VARIABLE, "")).expanduser() / "nki-library"
    if VARIABLE not in os.environ or not checkout.is_dir():
        print(f"{checkout} does not exist; set {VARIABLE} to the folder that holds the checkout nki-library.")
        return 2
    options.results.mkdir(parents=True, exist_ok=True)
    rows: dict[str, dict[str, object]] = {}
    for platform in options.platform:
        cases = _sample(checkout, platform, options)
        rows.update(_run(checkout, platform, cases, options))
    print(scoreboard(rows))
    return 0 if all(row["outcome"] in ("passed", "skipped") for row in rows.values()) else 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sample", type=int, default=100, help="cases per platform; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--only", default="", help="regular expression that a case's name must contain")
    parser.add_argument("--platform", nargs="+", default=["trn2"], help="targets, e.g. trn2 trn3")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--timeout", type=int, default=300, help="seconds that a case may take")
    parser.add_argument("--memory", type=float, default=10, help="GiB that a process may take")
    parser.add_argument("--again", action="store_true", help="run cases that failed before again")
    parser.add_argument("--results", type=Path, default=Path("public_kernels"), help="folder of the results")
    return parser


def _sample(checkout: Path, platform: str, options: argparse.Namespace) -> list[str]:
    """The chosen cases of a platform."""
    collected = (options.results / f"collected.{platform}").resolve()
    if not collected.is_file():
        _pytest(checkout, platform, ["test", "--collect-only", "-qq"], {plugin.COLLECTED: str(collected)})
    names = [name for name in collected.read_text().splitlines() if re.search(options.only, name)]
    if options.sample and len(names) > options.sample:
        names = random.Random(options.seed).sample(names, options.sample)
    return names


def _run(
    checkout: Path, platform: str, cases: list[str], options: argparse.Namespace
) -> dict[str, dict[str, object]]:
    """How each case ended; those that an earlier run ended are not run again."""
    shares = [cases[job :: options.jobs] for job in range(options.jobs)]
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = range(options.jobs)
        for _ in pool.map(lambda job: _run_share(checkout, platform, shares[job], job, options), jobs):
            pass
    rows = _results(options.results, platform)
    return {f"{platform} {name}": rows[name] for name in cases if name in rows}


def _run_share(
    checkout: Path, platform: str, cases: list[str], job: int, options: argparse.Namespace
) -> None:
    """Run cases in one process after another, until none is left."""
    results = (options.results / f"results.{platform}.{job}.jsonl").resolve()
    chosen = results.with_suffix(".cases")
    retried = set(cases) if options.again else set()
    finished: set[str] = set()
    while True:
        known = _results(options.results, platform)
        ended = {n for n, row in known.items() if row["outcome"] == "passed" or n not in retried} | finished
        left = [name for name in cases if name not in ended]
        if not left:
            return
        chosen.write_text("\n".join(left) + "\n")
        before = results.stat().st_size if results.is_file() else 0
        files = sorted({name.split("::")[0] for name in left})
        limits = ["-p", "no:cacheprovider", f"--timeout={options.timeout}", "--timeout-method=signal"]
        output = (options.results / f"output.{platform}.{job}").resolve()
        variables = {plugin.CASES: str(chosen), plugin.RESULTS: str(results),
                     plugin.MEMORY: str(options.memory)}  # fmt: skip
        where = ["--output-directory", str(output), "--force-local-cleanup", "-o", f"artifacts_dir={output}"]
        _pytest(checkout, platform, [*files, "-q", *limits, *where], variables)
        new = _rows(results, before)
        finished |= _note_deaths(results, new)
        if not new:  # the process ended before its first case
            for name in left:
                _append(results, name, "failed", "pytest did not collect or start this case")
            return


def _note_deaths(results: Path, rows: list[dict[str, object]]) -> set[str]:
    """Names of the cases of a process that ended; one that was started only has killed it."""
    last = {str(row["case"]): str(row["outcome"]) for row in rows}
    for name, outcome in last.items():
        if outcome == "started":
            _append(results, name, "failed", "the process was killed")
    return set(last)


def _append(results: Path, name: str, outcome: str, message: str) -> None:
    with results.open("a") as file:
        file.write(json.dumps({"case": name, "outcome": outcome, "seconds": 0, "message": message}) + "\n")


def _rows(results: Path, start: int = 0) -> list[dict[str, object]]:
    if not results.is_file():
        return []
    with results.open() as file:
        file.seek(start)
        return [json.loads(line) for line in file]


def _results(folder: Path, platform: str) -> dict[str, dict[str, object]]:
    """The last row of each case that has ended."""
    rows: dict[str, dict[str, object]] = {}
    for file in sorted(folder.glob(f"results.{platform}.*.jsonl")):
        for row in _rows(file):
            if row["outcome"] != "started":
                rows[str(row["case"])] = row
    return rows


def _pytest(checkout: Path, platform: str, arguments: list[str], variables: dict[str, str]) -> None:
    path = [str(ROOT / "scripts"), str(checkout / "src"), str(checkout)]
    environment = {
        **os.environ, **variables, "PYTHONPATH": os.pathsep.join(path), "NEURON_PYTHONHASHSEED": _SEED,
        "PYTHONHASHSEED": _SEED, "NKILIB_SIMULATION_RUN_ALL": "1", "NKILIB_FORCE_BUNDLED_LIBRARY": "",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "neuron_tools", "--target", platform, "-m", "pytest", *arguments,
               "-p", plugin.__name__, "-p", "pytest_timeout", "-p", "xdist.plugin",
               "--continue-on-collection-errors", "--test-mode=simulation", f"--platform-target={platform}",
               "-o", "log_level=ERROR", "-o", "addopts="]  # fmt: skip
    log = Path(variables.get(plugin.RESULTS) or variables[plugin.COLLECTED]).with_suffix(".log")
    with log.open("w") as file:
        subprocess.run(command, cwd=checkout, env=environment, stdout=file, stderr=subprocess.STDOUT)


def scoreboard(rows: dict[str, dict[str, object]]) -> str:
    """Counts per part of the library, and the reasons of failures, most frequent first.

    Args:
        rows: How each case ended, by its name.
    """
    counts: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for name, row in rows.items():
        counts.setdefault(_part(name), Counter())[str(row["outcome"])] += 1
        if row["outcome"] == "failed":
            reasons[_reason(str(row["message"]))] += 1
    lines = ["| part | passed | failed | skipped |", "|---|---|---|---|"]
    total: Counter[str] = Counter()
    for part, count in sorted(counts.items()):
        total += count
        lines.append(f"| {part} | {count['passed']} | {count['failed']} | {count['skipped']} |")
    lines.append(f"| all | {total['passed']} | {total['failed']} | {total['skipped']} |")
    return "\n".join([*lines, "", *(f"{count:4d}  {reason}" for reason, count in reasons.most_common())])


def _part(name: str) -> str:
    return name.split("::")[0].split("test/")[-1].removeprefix("integration/nkilib/").removesuffix(".py")


def _reason(message: str) -> str:
    """A failure's message with its numbers, names of files and values left out."""
    line = next((line for line in message.splitlines() if line.strip()), "")
    line = re.sub(r"/\S+/(\S+?):\d+", r"\1", line)
    return re.sub(r"\d+(\.\d+)?", "N", line)[:220]


if __name__ == "__main__":
    sys.exit(main())
