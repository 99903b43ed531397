import numpy as np

from neuron_tools.capture.columns import NULL_CODE, TextPool, TextPools


def test_equal_texts_share_a_code():
    pool = TextPool()
    assert pool.codes(["a", "b", "a"]).tolist() == [0, 1, 0]


def test_array_holds_only_the_texts_that_occur():
    pool = TextPool()
    pool.codes(["unused", "x", "y"])
    array = pool.array(pool.codes(["y", "x", "y"]))
    assert array.to_pylist() == ["y", "x", "y"]
    assert sorted(array.dictionary.to_pylist()) == ["x", "y"]


def test_none_becomes_null():
    pool = TextPool()
    codes = pool.codes([None, "x", None])
    assert codes[0] == NULL_CODE
    assert pool.array(codes).to_pylist() == [None, "x", None]


def test_all_null_and_empty_arrays():
    pool = TextPool()
    assert pool.array(pool.codes([None, None])).to_pylist() == [None, None]
    assert pool.array(pool.codes([])).to_pylist() == []


def test_table_joins_numbers_and_texts():
    pools = TextPools()
    table = pools.table({"n": np.array([1, 2])}, {"t": pools["t"].codes(["a", "b"])})
    assert table["n"].tolist() == [1, 2]
    assert table["t"].to_pylist() == ["a", "b"]
