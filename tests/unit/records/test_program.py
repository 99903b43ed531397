"""Tables of a Program: rows without references, and tables stored before a column existed."""

import numpy as np

from neuron_tools.records.program import DMA_DTYPE, TABLE_DTYPES, conform, empty_table


def test_references_of_an_empty_table_lead_nowhere():
    table = empty_table(DMA_DTYPE, 2)
    assert (table["tile"] == -1).all()
    assert (table["collective"] == -1).all()
    assert (table["bytes"] == 0).all()


def test_an_older_table_gets_the_columns_it_lacks():
    older = np.dtype([("queue", "u2"), ("bytes", "i8"), ("tile", "i4")])
    table = conform(np.array([(3, 4096, 7)], older), DMA_DTYPE)
    assert table.dtype == DMA_DTYPE
    assert (table["queue"][0], table["bytes"][0], table["tile"][0]) == (3, 4096, 7)
    assert (table["strided"][0], table["cast"][0], table["collective"][0]) == (0, 0, -1)


def test_a_table_of_today_is_itself():
    for dtype in TABLE_DTYPES.values():
        table = empty_table(dtype, 3)
        assert conform(table, dtype) is table
