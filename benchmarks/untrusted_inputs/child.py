"""Tries inputs of one kind in a process of its own.

`python -m benchmarks.untrusted_inputs.child KIND SEED COUNT FOLDER`

Prints a JSON line before each input (its number) and after (how it ended), so that whoever started this knows
which input ended it, or never came to an end.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.untrusted_inputs.queries import SECRET, Statements
from benchmarks.untrusted_inputs.readers import READERS
from neuron_tools.errors import NeuronToolsError

SQL = "SQL"
QUERY_DEADLINE_S = 0.5
MOST_ROWS = 100


def main(kind: str, seed: str, count: str, folder: str) -> None:
    """Try so many inputs."""
    warnings.simplefilter("ignore")
    tries = _queries(int(seed), Path(folder)) if kind == SQL else _files(kind, int(seed), Path(folder))
    told = sys.stdout
    sys.stdout = sys.stderr  # what is read must not speak here
    for number, (what, attempt) in zip(range(int(count)), tries):
        print(json.dumps({"number": number, "input": what}), file=told, flush=True)
        began = perf_counter()
        ending = _ending(attempt)
        seconds = perf_counter() - began
        memory = {"peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
        print(json.dumps({"ending": ending, "seconds": seconds, **memory}), file=told, flush=True)
    _end_queries()
    children_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"children_kib": children_kib}), file=told, flush=True)


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


def _files(kind: str, seed: int, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    reader = READERS[kind]
    sound = folder / "sound"
    sound.mkdir(parents=True)
    reader.make(sound)
    number = 0
    while True:
        made = folder / "inputs" / "damaged"
        reader.damage(sound, made, random.Random(f"{seed} {number}"))
        yield f"{seed} {number}", lambda: reader.read(made)  # noqa: B023
        number += 1


def _queries(seed: int, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
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
    statements = Statements(seed, functions, others)
    with open_profile(folder / "run.nprof") as profile:

        def ask(statement: str) -> None:
            answer = profile.first_rows(statement, MOST_ROWS, QUERY_DEADLINE_S)
            if SECRET in str(answer.to_pydict()):
                raise AssertionError("a query read a file of the user's")

        while True:
            statement = statements.next()
            yield statement, lambda: ask(statement)  # noqa: B023


def _end_queries() -> None:
    """The processes that answer queries are ended, so that their memory is counted."""
    from neuron_tools.profile.lockdown import query_worker

    query_worker.close_idle()


if __name__ == "__main__":
    main(*sys.argv[1:])
