import numpy as np

from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.table_template import ExecutionOrigin, Replay, TableTemplate, replay


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


def block(starts, first_ids, origins=None, **constants):
    return Replay(
        start_ns=np.array(starts, np.int64),
        first_id=np.array(first_ids, np.int64),
        origins=[(origin,) for origin in origins or [ExecutionOrigin()] * len(starts)],
        constants={name: np.array(values, np.int64) for name, values in constants.items()},
    )


def test_times_and_references_move_with_each_execution():
    pools = TextPools()
    two = template(pools, [0, 5], ["a", "b"], [0, -1])
    columns = replay([two, two], block([100, 200], [10, 20], core=[0, 1]), pools)
    assert columns["start_ts"].tolist() == [100, 105, 200, 205]
    assert columns["id"].to_pylist() == [10, None, 20, None]
    assert columns["core"].tolist() == [0, 0, 1, 1]
    assert columns["name"].to_pylist() == ["a", "b", "a", "b"]


def test_an_eager_execution_brings_its_own_origin():
    pools = TextPools()
    eager = template(pools, [0], ["?"], [0], origin=frozenset({"name"}), origin_numbers=frozenset({"line"}))
    origins = [ExecutionOrigin({"name": "m.py"}, {"line": 7}), ExecutionOrigin({"name": None}, {"line": 0})]
    columns = replay([eager, eager], block([0, 1], [0, 1], origins), pools)
    assert columns["name"].to_pylist() == ["m.py", None]
    assert columns["line"].tolist() == [7, 0]


def test_executions_without_rows_are_passed_over():
    pools = TextPools()
    empty = template(pools, [], [], [])
    one = template(pools, [3], ["x"], [0])
    assert replay([empty], block([0], [0]), pools) is None
    columns = replay([empty, one], block([10, 20], [0, 5]), pools)
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
    columns = replay([graph], block([0], [0], [ExecutionOrigin({"name": "call.py"}, {"line": 7})]), pools)
    assert columns["name"].to_pylist() == ["own.py", "call.py"]
    assert columns["line"].tolist() == [0, 7]


def test_a_flag_of_an_execution_is_that_of_all_its_rows():
    pools = TextPools()
    graph = TableTemplate(
        rows=2, numbers={"again": np.array([False, True])}, origin_flags=frozenset({"again"})
    )
    calls = [ExecutionOrigin({}, {"again": again}) for again in (False, True)]
    columns = replay([graph, graph], block([0, 9], [0, 2], calls), pools)
    assert columns["again"].tolist() == [False, True, True, True]
