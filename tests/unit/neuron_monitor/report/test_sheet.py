"""Text made before, filled with values: whole, or with only some of them made anew."""

import json

import orjson
from hypothesis import given
from hypothesis import strategies as st

from neuron_monitor.report.sheet import SLOT, Sheet, cut, joined

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


@given(told=entries, data=st.data())
def test_values_in_slots_can_be_others(told, data):
    sheet, expected = sheet_of(told)
    chosen = data.draw(st.lists(st.sampled_from(range(len(told))), unique=True)) if told else []
    positions = sorted(3 * number for number in chosen)
    parts = sheet.with_slots(positions)
    assert len(parts) == len(positions) + 1
    for position in positions:
        expected[position // 3]["count"] = -position
    values = [b"%d" % -position for position in positions]
    assert json.loads(joined(parts, values)) == expected
