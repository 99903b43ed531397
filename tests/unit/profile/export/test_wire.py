import numpy as np
from hypothesis import given, settings, strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.profile.export import wire

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@settings(deadline=None)
@given(st.lists(INT64, min_size=1, max_size=40))
def test_number_fields_are_what_the_generated_class_writes(values):
    encoded = wire.number_field(4, np.array(values, np.int64)).pack()

    expected = b"".join(protos.DebugAnnotation(int_value=value).SerializeToString() for value in values)
    assert encoded == expected


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_double_fields_are_what_the_generated_class_writes(values):
    encoded = wire.fixed64_field(5, np.array(values, "<f8")).pack()

    expected = b"".join(protos.DebugAnnotation(double_value=value).SerializeToString() for value in values)
    assert encoded == expected


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=200), st.booleans()), min_size=1, max_size=20))
def test_texts_with_gaps_are_what_the_generated_class_writes(rows):
    contents = [text.encode() for text, _ in rows]
    offsets = np.concatenate([[0], np.cumsum([len(content) for content in contents])]).astype(np.int64)
    present = np.array([given_ for _, given_ in rows])

    text = wire.texts(offsets, np.frombuffer(b"".join(contents), np.uint8))
    encoded = wire.message_field(1, wire.message_field(2, text).where(present)).pack()

    messages = [
        protos.InternedData(event_categories=[protos.EventCategory(name=text if given_ else None)])
        for text, given_ in rows
    ]
    assert encoded == b"".join(message.SerializeToString() for message in messages)
