"""Tries inputs of one kind in a process of its own.

`python -m benchmarks.untrusted_inputs.child KIND SEED FIRST COUNT FOLDER`

Reads the sound example first, so that code is loaded and compiled and the time of an input is its own. Prints
a JSON line before each input (its seed and number, or its text) and after (how it ended), so that whoever
started this knows which input ended it, or never came to an end.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.untrusted_inputs.queries import SECRET, Statements
from benchmarks.untrusted_inputs.readers import READERS
from neuron_tools.errors import NeuronToolsError

SQL = "SQL"
QUERY_DEADLINE_S = 0.5
MOST_ROWS = 100


def main(kind: str, seed: str, first: str, count: str, folder: str) -> None:
    """Try so many inputs, from the first of these numbers on."""
    warnings.simplefilter("ignore")
    numbers = range(int(first), int(first) + int(count))
    seeds = (f"{seed} {number}" for number in numbers)
    tries = _queries(seeds, Path(folder)) if kind == SQL else _files(kind, seeds, Path(folder))
    told = sys.stdout
    sys.stdout = sys.stderr  # what is read must not speak here
    for what, attempt in tries:
        print(json.dumps({"input": what, "peak_kib": _peak_kib()}), file=told, flush=True)
        began = perf_counter()
        ending = _ending(attempt)
        seconds = perf_counter() - began
        ended = {"ending": ending, "seconds": seconds, "peak_kib": _peak_kib()}
        print(json.dumps(ended), file=told, flush=True)
    _end_queries()
    children_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"children_kib": children_kib}), file=told, flush=True)


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _ending(attempt: Callable[[], None]) -> str:
    """ "read", "refused", or what must not be: an error that is no sentence."""
    try:
        attempt()
    except NeuronToolsError as error:
        is_sentence = str(error).strip() and "\n" not in str(error) and "Traceback" not in str(error)
        return "refused" if is_sentence else f"finding: no sentence: {error!r}"
    except BaseException as error:  # whatever it is, it is told
        return f"finding: {type(error).__name__}: {str(error)[:300]}"
    return "read"


def _files(kind: str, seeds: Iterable[str], folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    reader = READERS[kind]
    sound, made = folder / "sound", folder / "inputs" / "damaged"
    sound.mkdir(parents=True)
    reader.make(sound)
    shutil.copytree(sound, made)
    reader.read(made, made)
    for seed in seeds:
        spoilt = reader.damage(made, random.Random(seed))
        yield seed, lambda: reader.read(made, spoilt)  # noqa: B023 - called before the next one is made
        reader.mend(made, spoilt, sound)


def _queries(seeds: Iterable[str], folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    import duckdb

    from neuron_tools.profile.reader import open_profile

    READERS["profile"].make(folder)
    others = folder / "others"
    others.mkdir()
    (others / "secret.csv").write_text(f"a,b\n1,{SECRET}\n")
    functions = (
        duckdb.connect()
        .execute(
            "SELECT DISTINCT function_name, list_transform(parameter_types, lambda kind:"
            " coalesce(kind, 'ANY'))"
            " FROM duckdb_functions()"
            " WHERE function_name ~ '^[a-z_0-9]+$' ORDER BY ALL"
        )
        .fetchall()
    )
    with open_profile(folder / "run.nprof") as profile:

        def ask(statement: str) -> None:
            answer = profile.first_rows(statement, MOST_ROWS, QUERY_DEADLINE_S)
            if SECRET in str(answer.to_pydict()):
                raise AssertionError("a query read a file of the user's")

        ask("SELECT 1")
        for seed in seeds:
            statement = Statements(seed, functions, others).next()
            yield statement, lambda: ask(statement)  # noqa: B023 - called before the next one is made


def _end_queries() -> None:
    """The processes that answer queries are ended, so that their memory is counted."""
    from neuron_tools.profile.lockdown import query_worker

    query_worker.close_idle()


if __name__ == "__main__":
    main(*sys.argv[1:])
