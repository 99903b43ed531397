"""Text made before, filled with values: at once, or anew."""

import json

import orjson
from hypothesis import given, strategies as st

from neuron_monitor.report.sheet import SLOT, Sheet, cut

entries = st.lists(
    st.tuples(
        st.integers(-(2**50), 2**50),
        st.floats(allow_nan=False, allow_infinity=False),
        st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2),
    ),
    max_size=5,
)


def sheet_of(told):
    """A list of entries {"count", "share", "table"}, and what it stands for."""
    sheet = Sheet()
    form = cut({"count": SLOT, "share": SLOT, "table": SLOT})
    for count, share, table in told:
        sheet.numbers += (count, share)
        sheet.add_text(orjson.dumps(table))
        sheet.add(form)
    return sheet, [{"count": count, "share": share, "table": table} for count, share, table in told]


@given(told=entries)
def test_a_sheet_is_the_json_of_its_values(told):
    sheet, expected = sheet_of(told)
    assert json.loads(orjson.dumps(sheet.text())) == expected


@given(told=entries)
def test_values_that_are_others_by_now_stand_where_the_old_ones_stood(told):
    sheet, expected = sheet_of(told)
    sheet.text()
    for number, entry in enumerate(expected):
        sheet.numbers[3 * number] = entry["count"] = -number
    assert json.loads(orjson.dumps(sheet.text())) == expected
