"""Copies of tables of records as plain bytes: the same rows as NumPy's own, field by field."""

import numpy as np
import pytest

from neuron_tools.records.program import INSTRUCTION_DTYPE
from neuron_tools.records.rows import copied, joined, taken


@pytest.fixture
def table():
    rows = np.zeros(5, INSTRUCTION_DTYPE)
    rows["elements"], rows["dma"] = np.arange(5), -1
    return rows


def test_a_copy_has_the_rows_and_is_apart(table):
    other = copied(table)
    other["elements"] = 7
    assert other.dtype == table.dtype
    assert table["elements"].tolist() == [0, 1, 2, 3, 4]


def test_rows_come_in_the_order_asked_for(table):
    order = np.array([4, 0, 0, 2])
    assert np.array_equal(taken(table, order), table[order])


def test_parts_of_a_table_join_to_it(table):
    assert np.array_equal(joined([table[::2], table[1::2]]), np.concatenate([table[::2], table[1::2]]))
