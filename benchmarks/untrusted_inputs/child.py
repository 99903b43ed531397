"""Tries inputs of one kind in a process of its own.

`python -m benchmarks.untrusted_inputs.child KIND SEED FIRST COUNT FOLDER TOGETHER`

Reads the sound example first, so that code is loaded and compiled and the time of an input is its own. Prints
a JSON line before each input (its seed and number, or its text) and after (how it ended), so that whoever
started this knows which input ended it, or never came to an end.

Of a kind whose inputs can be read several as one, one of TOGETHER is read alone, and then the others at once:
that too is told, with their number, and thereafter each of them; those that were not read so are read alone.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.untrusted_inputs.queries import SECRET, Statements
from benchmarks.untrusted_inputs.readers import READERS, Damaged, Reader
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

SQL = "SQL"
QUERY_DEADLINE_S = 0.5
MOST_ROWS = 100


@frozen
class Attempt:
    """Something to try.

    Attributes:
        what: An input's seed and number, or its text; or those of several.
        together: How many inputs are read as one, before each of them is told; 0 of one alone.
    """

    what: str
    run: Callable[[], None]
    together: int = 0


def main(kind: str, seed: str, first: str, count: str, folder: str, together: str) -> None:
    """Try so many inputs, from the first of these numbers on."""
    warnings.simplefilter("ignore")
    numbers = range(int(first), int(first) + int(count))
    seeds = [f"{seed} {number}" for number in numbers]
    of_sql = kind == SQL
    attempts = _queries(seeds, Path(folder)) if of_sql else _files(kind, seeds, Path(folder), int(together))
    told = sys.stdout
    sys.stdout = sys.stderr  # what is read must not speak here
    for attempt in attempts:
        trying = {"input": attempt.what, "together": attempt.together, "peak_kib": _peak_kib()}
        print(json.dumps(trying), file=told, flush=True)
        began = perf_counter()
        ending = _ending(attempt.run)
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


def _files(kind: str, seeds: Sequence[str], folder: Path, together: int) -> Iterator[Attempt]:
    reader = READERS[kind]
    sound = folder / "sound"
    sound.mkdir(parents=True)
    reader.make(sound)
    most = 1 if reader.together is None else together
    made = [folder / "inputs" / f"damaged-{number}" for number in range(most)]
    for each in made:
        shutil.copytree(sound, each)
    _read_sound(reader, made, folder)
    for start in range(0, len(seeds), most):
        chosen = seeds[start : start + most]
        inputs = [Damaged(each, reader.damage(each, random.Random(seed))) for each, seed in zip(made, chosen)]
        yield from _batch(reader, chosen, inputs, folder)
        for each in inputs:
            reader.mend(each.folder, each.spoilt, sound)


def _read_sound(reader: Reader, made: Sequence[Path], folder: Path) -> None:
    """Read sound examples each way, so that code is loaded."""
    reader.read(made[0], made[0])
    sound = [Damaged(each, next(each.glob(reader.files[0]))) for each in made[1:]]
    if sound and len(_read_together(reader, sound, folder)) < len(sound):
        raise RuntimeError("Sound inputs cannot be read together.")


def _batch(
    reader: Reader, seeds: Sequence[str], inputs: Sequence[Damaged], folder: Path
) -> Iterator[Attempt]:
    """One input alone, then the others together, then those of them that were not read."""
    read: list[Damaged] = []

    def read_together() -> None:
        read.extend(_read_together(reader, inputs[1:], folder))

    for place, (seed, each) in enumerate(zip(seeds, inputs)):
        if place == 1:
            yield Attempt(f"{seed} to {seeds[-1]} together", read_together, len(inputs) - 1)
        if each in read:
            yield Attempt(seed, lambda: None)
        else:
            yield Attempt(seed, partial(reader.read, each.folder, each.spoilt))


def _read_together(reader: Reader, inputs: Sequence[Damaged], folder: Path) -> list[Damaged]:
    assert reader.together is not None
    with TemporaryDirectory(dir=folder / "inputs") as place:
        return reader.together(inputs, Path(place))


def _queries(seeds: Sequence[str], folder: Path) -> Iterator[Attempt]:
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
            yield Attempt(statement, partial(ask, statement))


def _end_queries() -> None:
    """The processes that answer queries are ended, so that their memory is counted."""
    from neuron_tools.profile.lockdown import query_worker

    query_worker.close_idle()


if __name__ == "__main__":
    main(*sys.argv[1:])
