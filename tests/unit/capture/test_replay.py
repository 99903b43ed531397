import numpy as np

from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.replay import LaidTable, Replay
from neuron_tools.capture.table_template import ExecutionOrigin, TableTemplate

NO_ORIGIN = ExecutionOrigin()


def template(pools, times, names, references, **options):
    rows = len(times)
    return TableTemplate(
        rows=rows,
        numbers={"line": np.zeros(rows, np.int32)},
        times={"start_ts": np.array(times, np.int64)},
        references={"id": np.array(references, np.int64)},
        texts={"name": pools["name"].codes(names)},
        **options,
    )


def replayed(executions, pools):
    """Columns of (template, start, first id, first core, origin) laid down in this order, each once."""
    laid = LaidTable()
    templates, starts, first_ids, cores, origins = zip(*executions)
    kinds = [template.called_from((origin,), pools) for template, origin in zip(templates, origins)]
    laid.add([kind.on_core(0, 0) for kind in kinds])
    columns = (np.arange(len(starts)), *(np.array(values, np.int64) for values in (starts, first_ids, cores)))
    return laid.replay(Replay(*columns), pools)


def test_times_and_references_move_with_each_execution():
    pools = TextPools()
    two = template(pools, [0, 5], ["a", "b"], [0, -1])
    columns = replayed([(two, 100, 10, 0, NO_ORIGIN), (two, 200, 20, 2, NO_ORIGIN)], pools)
    assert columns["start_ts"].tolist() == [100, 105, 200, 205]
    assert columns["id"].to_pylist() == [10, None, 20, None]
    assert columns["pcore_idx"].tolist() == [0, 0, 2, 2]
    assert columns["name"].to_pylist() == ["a", "b", "a", "b"]


def test_an_eager_execution_brings_its_own_origin():
    pools = TextPools()
    eager = template(pools, [0], ["?"], [0], origin=frozenset({"name"}), origin_numbers=frozenset({"line"}))
    origins = [ExecutionOrigin({"name": "m.py"}, {"line": 7}), ExecutionOrigin({"name": None}, {"line": 0})]
    columns = replayed([(eager, at, at, 0, origin) for at, origin in enumerate(origins)], pools)
    assert columns["name"].to_pylist() == ["m.py", None]
    assert columns["line"].tolist() == [7, 0]


def test_executions_without_rows_are_passed_over():
    pools = TextPools()
    empty = template(pools, [], [], [])
    one = template(pools, [3], ["x"], [0])
    assert replayed([(empty, 0, 0, 0, NO_ORIGIN)], pools) is None
    columns = replayed([(empty, 10, 0, 0, NO_ORIGIN), (one, 20, 5, 0, NO_ORIGIN)], pools)
    assert columns["start_ts"].tolist() == [23]
    assert columns["id"].to_pylist() == [5]


def test_only_the_chosen_rows_take_their_executions_origin():
    pools = TextPools()
    graph = template(
        pools,
        [0, 5],
        ["own.py", ""],
        [0, 1],
        origin=frozenset({"name"}),
        origin_numbers=frozenset({"line"}),
        origin_rows=np.array([False, True]),
    )
    columns = replayed([(graph, 0, 0, 0, ExecutionOrigin({"name": "call.py"}, {"line": 7}))], pools)
    assert columns["name"].to_pylist() == ["own.py", "call.py"]
    assert columns["line"].tolist() == [0, 7]


def test_a_flag_of_an_execution_is_that_of_all_its_rows():
    pools = TextPools()
    graph = TableTemplate(
        rows=2, numbers={"again": np.array([False, True])}, origin_flags=frozenset({"again"})
    )
    calls = [ExecutionOrigin({}, {"again": again}) for again in (False, True)]
    columns = replayed([(graph, 0, 0, 0, calls[0]), (graph, 9, 2, 0, calls[1])], pools)
    assert columns["again"].tolist() == [False, True, True, True]


def test_a_kind_is_laid_down_once_and_gathered_as_often_as_it_ran():
    pools, laid = TextPools(), LaidTable()
    laid.add([template(pools, [0, 5], ["a", "b"], [0, 1]).on_core(0, 0)])
    laid.add([template(pools, [1], ["c"], [0]).on_core(0, 0)])
    kinds = np.array([1, 0, 1, 1], np.int64)
    starts = np.array([10, 20, 30, 40], np.int64)
    columns = laid.replay(Replay(kinds, starts, starts, np.zeros(4, np.int64)), pools)
    assert laid.rows == 3
    assert columns["start_ts"].tolist() == [11, 20, 25, 31, 41]
    assert columns["name"].to_pylist() == ["c", "a", "b", "c", "c"]
    assert columns["id"].to_pylist() == [10, 20, 21, 30, 40]


def test_rows_of_a_second_core_have_its_number_and_ids_behind_the_firsts():
    rows = template(TextPools(), [0, 5], ["a", "b"], [0, -1]).on_core(1, 4)
    assert rows.numbers["pcore_idx"].tolist() == [1, 1]
    assert rows.references["id"].tolist() == [4, -1]
