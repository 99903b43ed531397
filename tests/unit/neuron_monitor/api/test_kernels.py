"""The inner loops, in Python and compiled: one set of tests for both."""

import json
import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_monitor.api import kernels as chosen
from neuron_monitor.api import python_kernels
from neuron_monitor.api.python_kernels import READ_BYTES

try:
    from neuron_monitor.api import _kernels as compiled
except ImportError:
    compiled = None

needs_compiler = pytest.mark.skipif(compiled is None, reason="the compiled kernels were not built here")
both = pytest.mark.parametrize(
    "kernels", [python_kernels, pytest.param(compiled, marks=needs_compiler)], ids=["python", "compiled"]
)
numbers = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**62)
COLUMNS = (0, 1, 2, 3, 5, 5, 7)


def as_bytes(numbers):
    return struct.pack(f"<{len(numbers)}q", *numbers)


@both
@given(row=st.lists(numbers, min_size=2, max_size=20), start=st.integers(0, 3))
def test_words_are_those_that_were_packed(kernels, row, start):
    data = as_bytes([7] * start + row)
    assert kernels.words(data, start, len(row)) == tuple(row)


@both
@pytest.mark.parametrize(
    "arguments", [(0, 4), (3, 1), (-1, 1), (0, -1), (2**62, 2**62)], ids=lambda arguments: str(arguments)
)
def test_words_beyond_the_end_are_refused(kernels, arguments):
    with pytest.raises(ValueError, match="not so many words"):
        kernels.words(as_bytes([1, 2, 3]), *arguments)


@both
@pytest.mark.parametrize(
    "arguments",
    [(0, 2, 2, (0,), 0), (1, 1, 2, (0,), 1), (0, 1, 2, (2,), 0), (0, 1, 2, (-1,), 0), (0, 2**61, 4, (0,), 4)],
    ids=lambda arguments: str(arguments),
)
def test_a_table_that_ends_too_soon_is_refused(kernels, arguments):
    with pytest.raises(ValueError, match="not so many words"):
        kernels.table(as_bytes([1, 2, 3]), *arguments)


@both
@given(rows=st.lists(st.lists(st.integers(0, 2**40), min_size=5, max_size=5), max_size=4))
def test_a_table_has_chosen_columns_and_sums(kernels, rows):
    data = as_bytes([9, *(number for row in rows for number in row), 7, 7])
    found, sums = kernels.table(data, 1, len(rows), 3, (2, 0), 2)
    assert found == [(row[2], row[0]) for row in rows]
    assert sums == as_bytes([sum(row[3] for row in rows), sum(row[4] for row in rows)])


@both
@given(
    values=st.lists(st.one_of(st.integers(), st.floats(allow_nan=False), st.none()), max_size=6),
    data=st.data(),
)
def test_values_stand_between_the_pieces(kernels, values, data):
    pieces = [b"<%d>" % number for number in range(len(values) + 1)]
    positions = data.draw(st.lists(st.sampled_from(range(len(values))), unique=True)) if values else []
    texts = {position: b"text %d" % position for position in sorted(positions)}
    numbers = json.dumps(values, separators=(",", ":")).encode()
    expected = b"".join(
        piece + (texts.get(at) or json.dumps(values[at]).encode() if at < len(values) else b"")
        for at, piece in enumerate(pieces)
    )
    assert kernels.interleaved(pieces, numbers, texts) == expected


@both
def test_what_was_added_since_a_reset_is_what_there_is(kernels):
    assert kernels.added((9, 1, 5, 9), (9, 4, 2, 9), 1, 3) == (3, 2)


@both
def test_rates_are_shares_and_amounts_a_second(kernels):
    before, after = (0, 0, 0, 0, 0, 0, 0), (300_000, 50, 2 * 10**8, 10**8, 10**10, 8, 0)
    found = kernels.core_rates(before, after, 10**9, COLUMNS)
    shares = (pytest.approx(0.1), 1.0)
    whole = (pytest.approx(10), 100, 8, 0, pytest.approx(20))
    assert found == (pytest.approx(0.3), 50.0, shares, (8.0, 0.0), pytest.approx(0.2), whole)
    assert [type(number) for number in found[-1]] == [float, float, int, int, float]


@both
@given(
    before=st.lists(counts, min_size=7, max_size=7),
    after=st.lists(counts, min_size=7, max_size=7),
    elapsed_ns=st.integers(1, 2**50),
)
def test_rates_stay_within_their_bounds_and_agree(kernels, before, after, elapsed_ns):
    found = kernels.core_rates(tuple(before), tuple(after), elapsed_ns, COLUMNS)
    expected = python_kernels.core_rates(tuple(before), tuple(after), elapsed_ns, COLUMNS)
    busy, flops, engines, traffic, throttled, whole = found
    assert len(whole) == len(engines) + len(traffic) + 1
    assert all(0 <= share <= 1 for share in (busy, throttled, *engines))
    assert all(rate >= 0 for rate in (flops, *traffic))
    flat = [busy, flops, throttled, *engines, *traffic]
    other = [expected[0], expected[1], expected[4], *expected[2], *expected[3]]
    assert flat == pytest.approx(other, rel=1e-12)


@both
@given(
    pairs=st.lists(st.tuples(st.integers(0, 2**30), st.integers(-5, 2**30)), max_size=30),
    shares=st.lists(st.floats(0, 1), max_size=5).map(sorted).map(tuple),
    is_new=st.booleans(),
)
def test_shares_are_reached_where_the_running_sum_says(kernels, pairs, shares, is_new):
    before = [0 if is_new else old for old, _ in pairs]
    after = [max(0, old + more) for old, (_, more) in zip(before, pairs)]
    added = [max(0, new - old) for old, new in zip(before, after)]
    found = kernels.reached_at(b"" if is_new else as_bytes(before), as_bytes(after), shares)
    if not sum(added):
        assert found == ()
        return
    for share, position in zip(shares, found):
        needed = max(share * sum(added), 0.5)
        assert sum(added[: position + 1]) >= needed
        assert sum(added[:position]) < needed
    assert len(found) == len(shares)


@both
def test_histograms_of_other_bounds_are_refused(kernels):
    with pytest.raises(ValueError, match="same bounds"):
        kernels.reached_at(as_bytes([1]), as_bytes([1, 2]), (0.5,))


@both
def test_only_what_changed_is_read_and_failures_are_told(kernels, tmp_path):
    paths = [tmp_path / name for name in ("same", "other", "long", "closed", "removed")]
    for path in paths:
        path.write_text("5\n")
    paths[2].write_text("9" * 100)
    descriptors = [os.open(path, os.O_RDONLY) for path in paths]
    texts = [b"5\n", b"4\n", b"", b"5\n", b"5\n"]
    os.close(descriptors[3])
    descriptors[3] = -1
    paths[4].unlink()
    found = kernels.read_counts(descriptors, texts, [4, 0, 1, 2, 3])
    for descriptor in (*descriptors[:3], descriptors[4]):
        os.close(descriptor)
    assert found == [(1, b"5\n", 5), (2, b"9" * 64, int("9" * 64)), (3, None, None)]
    with pytest.raises(IndexError):
        kernels.read_counts([], [], [0])


@both
def test_a_node_is_its_first_line(kernels):
    assert kernels.parse_count(b"42\n") == 42
    assert kernels.parse_count(b"7\n99\n") == 7
    assert kernels.parse_count(b" -1\t") == -1


@both
@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"-", b"- 1", b"--1", b"abc\n", b"1_000", b"+3", b"0x10", b"1.5", b"\xff\xfe\n", b"1 2"],
)
def test_garbage_is_no_number(kernels, text):
    assert kernels.parse_count(text) is None


@both
@given(text=st.one_of(st.binary(max_size=READ_BYTES), st.from_regex(rb"[ \t-]?-?[0-9]{0,40}[ \n\r]?[0-9]?")))
def test_any_text_is_understood_alike(kernels, text):
    text = text[:READ_BYTES]
    assert kernels.parse_count(text) == python_kernels.parse_count(text)


@both
@given(number=st.integers(-(2**70), 2**70), rest=st.binary(max_size=20))
def test_what_stands_behind_the_first_line_does_not_count(kernels, number, rest):
    assert kernels.parse_count(f"{number}\n".encode() + rest) == number


@both
def test_a_page_is_read_when_it_is_whole(kernels, tmp_path):
    path = tmp_path / "page"

    def read(*told, size=64):
        path.write_bytes(as_bytes(told))
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return kernels.read_page(descriptor, size)
        finally:
            os.close(descriptor)

    assert read(1, 4, 4, 9) == as_bytes([1, 4, 4, 9])
    assert read(1, 4, 4, 9, size=32) == as_bytes([1, 4, 4, 9])
    assert read(1, 5, 4, 9) is None  # is being written
    assert read(1, 4, 9, 9) is None  # has grown, or is cut off
    assert read(1, 4, -1, 9) is None
    assert read(1, 4) is None
    with pytest.raises(OSError, match="descriptor"):
        kernels.read_page(-1, 64)


@both
@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("7 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14\n", (11, 12)),
        ("7 (x) S 1 2 3 4 5 6 7 8 9 10 11", None),
        ("7 (x) S 1 2 3 4 5 6 7 8 9 10 a b c", None),
        ("", None),
    ],
)
def test_processor_time_stands_behind_the_name(kernels, tmp_path, text, ticks):
    (tmp_path / "stat").write_text(text)
    descriptor = os.open(tmp_path / "stat", os.O_RDONLY)
    assert kernels.processor_ticks([descriptor, -1]) == [ticks, None]
    os.close(descriptor)


@needs_compiler
def test_every_compiled_loop_stands_in_for_its_equivalent():
    compiled_names = {name for name in vars(compiled) if not name.startswith("_")}
    assert compiled_names == set(python_kernels.__all__)
    assert all(getattr(chosen, name) is getattr(compiled, name) for name in compiled_names)


@needs_compiler
def test_counters_beyond_64_bits_are_an_overflow():
    big = (2**64,) * 7
    with pytest.raises(OverflowError):
        compiled.core_rates(big, big, 1, COLUMNS)
    assert python_kernels.core_rates(big, big, 1, COLUMNS)[0] == 0
