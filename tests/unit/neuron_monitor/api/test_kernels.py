"""The inner loops, in Python and compiled: one set of tests for both."""

import json
import os
import struct
import subprocess
from array import array
from math import isfinite
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from neuron_monitor.api import kernels as chosen, python_kernels
from neuron_monitor.api.allocation import CoreAllocation
from neuron_monitor.api.latency import SHARES, Bounds, histogram
from neuron_monitor.api.layout import packed
from neuron_monitor.api.python_kernels import READ_BYTES
from neuron_monitor.api.readings import CoreReading, ProcessReading

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
WINDOW_COLUMNS = (0, 1, 2, 3, 5, 5, 6, 6, 8)


def as_bytes(numbers):
    return struct.pack(f"<{len(numbers)}q", *numbers)


def as_rows(numbers):
    return array("Q", numbers).tobytes()


def as_table(descriptors, values, limits, positions):
    """A table as `refresh` takes it."""
    opened, known = bytearray(array("i", descriptors)), bytearray(as_rows(values))
    return opened, known, as_rows(limits), array("i", positions).tobytes()


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


NUMBERS = st.one_of(st.integers(), st.floats(), st.floats(0, 100), st.decimals(0, 100, places=3).map(float))


def as_json(value):
    """A value as a sheet has it: what is no JSON number is null, and what is beyond 64 bits the largest."""
    if isinstance(value, float) and not isfinite(value):
        return b"null"
    if isinstance(value, int) and not -(2**63) < value < 2**64:
        return b"%d" % (2**63 - 1 if value > 0 else 1 - 2**63)
    return json.dumps(value).encode()


@both
@given(
    fillings=st.lists(
        st.lists(st.one_of(NUMBERS, st.none()), min_size=6, max_size=6), min_size=1, max_size=4
    ),
    data=st.data(),
)
def test_values_stand_between_the_pieces(kernels, fillings, data):
    pieces = [b"<%d>" % number for number in range(7)]
    form = kernels.form(b"".join(pieces), struct.pack("<7i", *map(len, pieces)))
    values = [0] * 6
    for filling in fillings:
        changed = data.draw(st.sets(st.sampled_from(range(6))))
        for position in changed:
            values[position] = filling[position]
        positions = data.draw(st.lists(st.sampled_from(range(6)), unique=True))
        texts = {position: b"text %d" % position for position in sorted(positions)}
        each = [texts.get(position) or as_json(value) for position, value in enumerate(values)]
        expected = b"".join(piece + value for piece, value in zip(pieces, [*each, b""]))
        assert kernels.filled(form, values, texts) == expected


@both
def test_a_form_has_a_value_for_each_place(kernels):
    form = kernels.form(b"[,]", struct.pack("<3i", 1, 1, 1))
    with pytest.raises(ValueError, match="each place"):
        kernels.filled(form, [1], {})
    assert kernels.filled(form, [1, 2.5], {}) == b"[1,2.5]"
    with pytest.raises(ValueError, match="lengths"):
        kernels.form(b"[,]", struct.pack("<2i", 1, 1))


@needs_compiler
def test_what_cannot_be_written_leaves_no_wrong_text_behind():
    form = compiled.form(b"[,]", struct.pack("<3i", 1, 1, 1))
    compiled.filled(form, [1, 2], {})
    with pytest.raises(TypeError):
        compiled.filled(form, [3, "text"], {})
    assert compiled.filled(form, [3, 4], {}) == b"[3,4]"


@both
def test_what_was_added_since_a_reset_is_what_there_is(kernels):
    assert kernels.added((9, 1, 5, 9), (9, 4, 2, 9), 1, 3) == (3, 2)


@both
def test_rates_are_shares_and_amounts_a_second(kernels):
    before, after = (0, 0, 0, 0, 0, 0, 0), (300_000, 50, 2 * 10**8, 10**8, 10**10, 8, 0)
    found = kernels.core_rates(before, after, 10**9, COLUMNS)
    shares = (pytest.approx(0.1), 1.0)
    assert found == (pytest.approx(0.3), 50.0, shares, (8.0, 0.0), pytest.approx(0.2))


@both
@given(
    before=st.lists(counts, min_size=7, max_size=7),
    after=st.lists(counts, min_size=7, max_size=7),
    elapsed_ns=st.integers(1, 2**50),
)
def test_rates_stay_within_their_bounds_and_agree(kernels, before, after, elapsed_ns):
    found = kernels.core_rates(tuple(before), tuple(after), elapsed_ns, COLUMNS)
    expected = python_kernels.core_rates(tuple(before), tuple(after), elapsed_ns, COLUMNS)
    busy, flops, engines, traffic, throttled = found
    assert all(0 <= share <= 1 for share in (busy, throttled, *engines))
    assert all(rate >= 0 for rate in (flops, *traffic))
    flat = [busy, flops, throttled, *engines, *traffic]
    other = [expected[0], expected[1], expected[4], *expected[2], *expected[3]]
    assert flat == pytest.approx(other, rel=1e-12)


def readings(rows, *, is_clocked=True):
    return {
        number: CoreReading(number, 0, number, packed(row), is_clocked) for number, row in enumerate(rows)
    }


@both
def test_two_cores_are_one_logical_core(kernels):
    # busy us, FLOP, throttled ns, two engines' ns, a kind of traffic, executions that ended well, and failed
    before = readings([[0, 0, 0, 0, 0, 0, 5, 1], [0, 0, 0, 0, 0, 0, 5, 1]])
    after = readings([[250, 50, 10**5, 10**6, 0, 3, 9, 1], [750, 50, 0, 10**6, 0, 4, 6, 1]])
    found = kernels.window_numbers(before, after, 10**6, WINDOW_COLUMNS, 2, 2)
    counters = [50.0, 100_000, 100_000, 25.0, 75.0]
    assert found == (counters, [100.0, 0.0, 7000, pytest.approx(5)], 5)
    assert [type(number) for number in found[0]] == [float, int, int, float, float]


@both
def test_a_core_that_is_new_did_all_that_a_process_counted_and_nothing_of_its_own_count(kernels):
    row = [[500, 7, 0, 0, 0, 0, 9, 0]]
    assert kernels.window_numbers({}, readings(row), 10**6, WINDOW_COLUMNS, 1, 1)[::2] == ([50.0, 7000], 9)
    own = readings(row, is_clocked=False)
    assert kernels.window_numbers({}, own, 10**6, WINDOW_COLUMNS, 1, 1) == ([0.0, 0], [None], 0)


@both
@pytest.mark.parametrize("new", [[9, 9, 0, 0, 0, 0, 9, 2], [9, 9, 0, 0, 0, 0, 4, 1]], ids=["failed", "reset"])
def test_executions_that_failed_or_were_reset_are_left_to_the_caller(kernels, new):
    before = readings([[9, 9, 0, 0, 0, 0, 5, 1]])
    assert kernels.window_numbers(before, readings([new]), 10**6, WINDOW_COLUMNS, 1, 1)[2] == -1


@both
@given(
    rows=st.lists(st.tuples(*[st.lists(counts, min_size=8, max_size=8)] * 2), max_size=5),
    elapsed_ns=st.integers(-5, 2**50),
    size=st.sampled_from([1, 2, 4]),
    is_clocked=st.booleans(),
)
def test_windows_stay_within_their_bounds_and_agree(kernels, rows, elapsed_ns, size, is_clocked):
    before = readings([old for old, _ in rows], is_clocked=is_clocked)
    after = readings([new for _, new in rows], is_clocked=is_clocked)
    found = kernels.window_numbers(before, after, elapsed_ns, WINDOW_COLUMNS, size, 1)
    expected = python_kernels.window_numbers(before, after, elapsed_ns, WINDOW_COLUMNS, size, 1)
    assert found[0] == pytest.approx(expected[0], rel=1e-12, abs=1)
    assert found[1] == (pytest.approx(expected[1], rel=1e-12, abs=1) if is_clocked else expected[1])
    assert found[2] == expected[2]


def process(pid, cores, **told):
    return ProcessReading(pid, str(pid), "", "", 1, cores, **told)


@both
def test_only_cores_whose_counters_changed_are_read_anew(kernels):
    old = tuple(readings([[1, 2], [3, 4], [5, 6]]).values())
    new = kernels.followed(old, as_rows([1, 2, 9, 4, 5, 2**64 - 1]))
    assert [core.counts for core in new] == [(1, 2), (9, 4), (5, 2**64 - 1)]
    assert [type(core) for core in new] == [CoreReading] * 3
    assert new[0] is old[0]
    assert kernels.followed(old, as_rows(range(1, 7))) is old
    with pytest.raises(ValueError, match="not so many words"):
        kernels.followed(old, as_rows([0] * 5))


@both
def test_processes_of_cores_that_stand_still_stay_the_same_objects(kernels):
    cores = readings([[1], [2]])
    processes = (process(1, {0: cores[0]}), process(2, {1: cores[1]}))
    moved = cores[1]._replace(words=packed([3]))
    found = kernels.with_cores(processes, {0: cores[0], 1: moved})
    assert found[0] is processes[0]
    assert found[1] == processes[1]._replace(cores={1: moved})
    assert type(found[1]) is ProcessReading
    with pytest.raises(KeyError):
        kernels.with_cores(processes, {0: cores[0]})


@both
@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"pid": 7}, False),
        ({"cores": readings([[1]])}, False),
        ({"cores": readings([[9], [9]])}, True),
    ],
)
def test_processes_have_the_same_cores_whatever_these_count(kernels, change, same):
    one = process(1, readings([[1], [2]]))
    assert kernels.have_same_cores((one,), (one._replace(**change),)) is same
    assert kernels.have_same_cores((one,), ()) is False


def refilled(kernels, old, new, numbers, **process_changes):
    before = process(1, readings([old], is_clocked=False))
    after = before._replace(cores=readings([new], is_clocked=False), **process_changes)
    outcomes, memory = ((7,), (6,)), (3, 4)
    places = [(1, 2, 4, 1, -1, 0, -1, -1)]
    told = 10**6, WINDOW_COLUMNS, 1, outcomes, memory, SHARES
    return kernels.refill(numbers, places, (before,), (after,), *told)


@both
@pytest.mark.parametrize(
    ("old", "new", "numbers", "others"),
    [
        ([0, 0, 0, 0, 0, 0, 5, 1], [500, 9, 0, 0, 0, 0, 9, 1], [7, 50.0, 9000, 7, 0, 4, 7], []),
        ([0, 0, 0, 0, 0, 0, 5, 1], [500, 9, 0, 0, 0, 0, 9, 3], [7, 50.0, 9000, 7, 2, 4, 7], []),
        ([9, 9, 0, 0, 0, 0, 5, 1], [0, 0, 0, 0, 0, 0, 3, 1], [7, 0.0, 0, 7, 0, 3, 7], []),
        ([0, 0, 0, 1, 0, 0, 5, 1], [0, 0, 0, 2, 0, 0, 5, 1], [7, 0.0, 0, 7, 0, 0, 7], [0]),
    ],
    ids=["ended well", "failed", "reset", "holds more memory"],
)
def test_numbers_are_put_where_they_stand(kernels, old, new, numbers, others):
    found = [7] * 7
    assert refilled(kernels, old, new, found) == others
    assert found == numbers


@both
@pytest.mark.parametrize("change", [{"tag": "other"}, {"cores": {}}, {"elapsed_ns": 5}, {"is_shared": True}])
def test_a_process_of_another_form_is_not_filled_in(kernels, change):
    before = process(1, readings([[0] * 8], is_clocked=False))
    after = (before._replace(**change),)
    told = 10**6, WINDOW_COLUMNS, 1, (), (3, 4), SHARES
    places = [(0, 2, -1, 1, -1, 0, -1, -1)]
    assert kernels.refill([0] * 3, places, (before,), after, *told) is None
    assert kernels.refill([0] * 3, [], (before,), (before,), *told) is None
    clocked = process(1, readings([[0] * 8]))
    assert kernels.refill([0] * 3, places, (clocked,), (clocked,), *told) is None


def publishing(row, elapsed_ns, executions):
    """A process that tells its own time: rows as above, and executions by two bounds."""
    bounds = Bounds((1000, 2000), (1e-6, 2e-6))
    latency = {kind: histogram(bounds, executions) for kind in ("device", "total")}
    told = {"elapsed_ns": elapsed_ns, "published_at_s": elapsed_ns / 1e9, "latency": latency}
    return process(1, readings([row]), **told)


@both
def test_a_process_that_tells_its_own_time_is_filled_in_by_it(kernels):
    before = publishing([0, 0, 0, 0, 0, 0, 5, 1], 10**9, (0, 0))
    after = publishing([500, 9, 0, 10**5, 0, 3, 9, 1], 10**9 + 10**6, (3, 1))
    bounds = before.latency["device"].bounds
    shared = {kind: each._replace(bounds=bounds) for kind, each in after.latency.items()}
    after = after._replace(tag=before.tag, latency=shared)
    found = [7] * 16
    places = [(1, 2, 9, 1, 4, 4, 11, 13)]
    told = 1, WINDOW_COLUMNS, 1, ((7,), (6,)), (3, 4), (0.5, 1.0)
    assert kernels.refill(found, places, (before,), (after,), *told) == [0]
    assert found == [7, 50.0, 9000, 7, 10.0, 0.0, 3000, 0.0, 7, 0, 4, 1e-6, 2e-6, 1e-6, 2e-6, 7]
    assert kernels.refill(found, places, (after,), (after,), *told) is None
    assert kernels.refill(found, places, (after,), (before,), *told) is None
    assert kernels.refill(found, [(1, 2, 9, 1, 4, 4, -1, 13)], (before,), (after,), *told) is None
    assert kernels.refill(found, [(1, 2, 9, 1, 4, 3, 11, 13)], (before,), (after,), *told) is None


@both
def test_a_core_whose_clock_stands_still_keeps_its_share(kernels):
    # busy us, simulated ns
    rows = [[0, 0], [250, 10**6]], [[0, 5], [900, 5]], [[9, 5], [3, 10**6]]
    before, after = (readings([row[at] for row in rows]) for at in (0, 1))
    assert kernels.utilizations(before, after, 1, {1: 0.75}, 0, 1) == {0: 0.25, 1: 0.75, 2: 0.0}
    real = readings([[750, 0]], is_clocked=False)
    assert kernels.utilizations(readings([[0, 0]], is_clocked=False), real, 10**6, {}, 0, 1) == {0: 0.75}
    assert kernels.utilizations({}, real, 10**6, {}, 0, 1) == {0: 0.0}


@both
def test_cores_worked_where_a_column_changed_or_they_were_not_there(kernels):
    before, after = readings([[1, 1, 1], [1, 1, 1]]), readings([[1, 2, 1], [1, 1, 2], [0, 0, 0]])
    assert kernels.worked(before, after, (0, 2)) == [1, 2]


@both
def test_a_device_is_told_by_what_its_cores_hold_and_do(kernels):
    cores = tuple(readings([[1, 2, 3], [4, 5, 6], [7, 8, 9]]).values())
    allocation = {1: CoreAllocation((7,), 3.9)}
    found = kernels.device_numbers(cores, {0: 0.5, 1: 1.0}, allocation, 1, 3)
    assert found == [33, 50.0, 0, 100.0, 3, 0.0, 0]


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
def test_new_numbers_are_kept_and_the_rest_is_told(kernels, tmp_path):
    contents = ("5\n", "6\n7\n", "9" * 100, "5\n", "5\n", "-1\n", "21\n", "", "05\n")
    paths = [tmp_path / str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents):
        path.write_text(content)
    descriptors = [os.open(path, os.O_RDONLY) for path in paths]
    values = [5] + [4] * 7 + [5]
    os.close(descriptors[3])
    descriptors[3] = -1
    paths[4].unlink()
    table = as_table(descriptors, values, [20] * 9, range(8, -1, -1))
    other = as_table(descriptors[:2], [5, 4], [20, 6], [1])
    found = kernels.refresh([table, other])
    for descriptor in descriptors[:3] + descriptors[4:]:
        os.close(descriptor)
    others = [(7, b""), (6, b"21\n"), (5, b"-1\n"), (3, None), (2, b"9" * 64)]
    assert found == [([4, 1], others), ([1], [])]
    assert memoryview(table[1]).cast("Q").tolist() == [5, 6, 4, 4, 5, 4, 4, 4, 5]


@both
def test_more_nodes_than_are_read_at_a_time_are_all_read(kernels, tmp_path):
    (tmp_path / "node").write_text("3\n")
    descriptor = os.open(tmp_path / "node", os.O_RDONLY)
    count = 200
    table = as_table([descriptor] * count, [0] * count, [9] * count, range(count))
    found = kernels.refresh([table])
    os.close(descriptor)
    assert found == [(list(range(count)), [])]
    assert table[1] == as_rows([3] * count)


@both
def test_files_that_were_removed_are_told(kernels, tmp_path):
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.touch()
    descriptors = [os.open(path, os.O_RDONLY) for path in paths]
    paths[1].unlink()
    assert kernels.removed([*descriptors, -1]) == [1]
    for descriptor in descriptors:
        os.close(descriptor)


@both
def test_nodes_that_there_are_not_cannot_be_read(kernels):
    for position in (-1, 1):
        with pytest.raises(IndexError):
            kernels.refresh([as_table([-1], [0], [0], [position])])
    with pytest.raises(ValueError, match="other lengths"):
        kernels.refresh([as_table([-1, -1], [0], [0, 0], [1])])


@both
@given(
    rows=st.lists(st.tuples(*[st.lists(st.integers(0, 2**62), min_size=8, max_size=8)] * 2), max_size=5),
    elapsed_ns=st.integers(-5, 2**50),
    size=st.sampled_from([1, 2]),
)
def test_rows_say_what_records_say(kernels, rows, elapsed_ns, size):
    old, new = ([pair[at] for pair in rows] for at in (0, 1))
    before = process(1, readings(old, is_clocked=False))
    after = before._replace(cores=readings(new, is_clocked=False))
    count = 2 * len({core // size for core in after.cores}) + (len(rows) if size > 1 else 0)
    places, outcomes, memory = [(0, count, count, size, -1, 0, -1, -1)], ((6, 7), (6,)), (3, 5)
    expected, found = ([7] * (count + 2) for _ in range(2))
    others = kernels.refill(
        expected, places, (before,), (after,), elapsed_ns, WINDOW_COLUMNS, 1, outcomes, memory, SHARES
    )
    if elapsed_ns < 0:
        return
    ids = tuple(after.cores)
    words = [as_rows([count for row in each for count in row]) for each in (old, new)]
    told = 8, elapsed_ns, (WINDOW_COLUMNS, 1), outcomes, memory
    assert kernels.refill_rows(found, places, [(ids, ids)], *words, *told) == others
    assert found == expected
    idle = [3] * len(rows)
    allocation = {core: CoreAllocation((1,), 3.5) for core in ids}
    shares = kernels.utilizations(before.cores, after.cores, elapsed_ns, {}, 0, 1)
    status = kernels.device_numbers(tuple(after.cores.values()), shares, allocation, 3, 5)
    assert kernels.status_numbers(*words, 8, (len(rows),), elapsed_ns, (0, 3, 5), idle) == status
    assert kernels.moved_rows(*words, 8, (0, 6)) == kernels.worked(before.cores, after.cores, (0, 6))


@both
def test_a_number_is_put_into_all_of_its_places(kernels):
    numbers = [1.0, 2, None, 4]
    kernels.put(numbers, array("i", [3, 1]).tobytes(), 0.5)
    assert numbers == [1.0, 0.5, None, 0.5]
    with pytest.raises(IndexError):
        kernels.put(numbers, array("i", [4]).tobytes(), 0.5)


@both
def test_rows_that_are_not_those_of_before_are_refused(kernels):
    one, two = as_rows([0] * 8), as_rows([0] * 16)
    told = 0, (WINDOW_COLUMNS, 1), (), (3, 5)
    place = (0, 2, -1, 1, -1, 0, -1, -1)
    for before, after, width, rows, at in (
        (one, two, 8, (0,), place),
        (one, one, 7, (0,), place),
        (one, one, 0, (0,), place),
        (one, one, 8, (1,), place),
        (one, one, 8, (-1,), place),
        (one, one, 8, (0,), (0, 3, *place[2:])),
    ):
        with pytest.raises(ValueError, match=r"rows|numbers"):
            kernels.refill_rows([7] * 9, [at], [((0,), rows)], before, after, width, *told)
    with pytest.raises(ValueError, match="rows"):
        kernels.status_numbers(one, one, 8, (2,), 1, (0, 3, 5), [0, 0])
    with pytest.raises(ValueError, match="columns"):
        kernels.status_numbers(one, one, 8, (1,), 1, (0, 3, 9), [0])
    with pytest.raises(ValueError, match="columns"):
        kernels.moved_rows(one, one, 8, (8,))


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


@both
def test_who_worked_since_is_told_by_the_clocks(kernels):
    clocks = bytearray(b"\xff" * 16)
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        pids = [sleeper.pid, os.getpid()]
        assert kernels.moved_clocks(pids, clocks) == [0, 1]
        while kernels.moved_clocks(pids, clocks) != [1]:
            pass  # It is still being started.
        sleeper.kill()
    assert kernels.moved_clocks(pids, clocks) == [0, 1]
    assert kernels.moved_clocks(pids, clocks) == [0, 1]
    with pytest.raises(ValueError, match="each process"):
        kernels.moved_clocks(pids, bytearray(8))


@both
def test_links_that_lead_where_they_did_are_told(kernels, tmp_path):
    for name, target in (("one", "/dev/neuron1"), ("other", "/dev/neuron10")):
        (tmp_path / name).symlink_to(target)
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    each = [
        {one: "/dev/neuron1", other: "/dev/neuron10"},
        {one: "/dev/neuron1", other: "/dev/neuron1"},
        {one: "/dev/neuron10"},
        {},
        {str(tmp_path / "none"): "/dev/neuron1"},
    ]
    assert kernels.leading_on(each) == [0, 3]


def nodes_of(path, texts):
    """A table of nodes that are open, and their numbers."""
    descriptors = []
    for number, text in enumerate(texts):
        (path / str(number)).write_text(text)
        descriptors.append(os.open(path / str(number), os.O_RDONLY))
    words = bytearray(8 * len(texts))
    limits = array("Q", [2**64 - 1] * len(texts)).tobytes()
    return (
        bytearray(array("i", descriptors)),
        words,
        limits,
        array("i", range(len(texts))).tobytes(),
    ), descriptors


@both
def test_what_is_read_within_a_time_is_what_is_read_without(kernels, tmp_path):
    (tmp_path / "other").mkdir()
    one, first = nodes_of(tmp_path, ["7\n", "0\n", "text\n"])
    other, second = nodes_of(tmp_path / "other", ["9\n"])
    reader = kernels.reader()
    assert kernels.refresh_within(reader, [one, other], 60.0, False) == [([0], [(2, b"text\n")]), ([0], [])]
    assert kernels.refresh_within(reader, [one, other], 60.0, False) == [([], [(2, b"text\n")]), ([], [])]
    assert memoryview(one[1]).cast("Q").tolist() == [7, 0, 0]
    assert not kernels.is_reading(reader)
    (tmp_path / "0").write_text("8\n")
    assert kernels.refresh_within(reader, [one], 60.0, True) == [([], [(2, b"text\n")])]
    assert memoryview(one[1]).cast("Q").tolist() == [8, 0, 0]
    for descriptor in (*first, *second):
        os.close(descriptor)
    assert kernels.refresh_within(reader, [one], 60.0, False) == [([], [(0, None), (1, None), (2, None)])]
    with pytest.raises(IndexError):
        kernels.refresh_within(reader, [(*one[:3], array("i", [3]).tobytes())], 60.0, False)


@both
def test_who_has_given_up_waiting_reads_on_when_that_ended(kernels, tmp_path):
    table, descriptors = nodes_of(tmp_path, ["7\n"] * 2000)
    reader = kernels.reader()
    while kernels.refresh_within(reader, [table], 0.0, False) is not None:
        pass  # It was read in no time.
    found = None
    while found is None:
        found = kernels.refresh_within(reader, [table], 60.0, False)
    assert not kernels.is_reading(reader)
    assert set(memoryview(table[1]).cast("Q")) == {7}
    for descriptor in descriptors:
        os.close(descriptor)


@needs_compiler
def test_every_compiled_loop_stands_in_for_its_equivalent():
    compiled_names = {name for name in vars(compiled) if not name.startswith("_")}
    assert compiled_names == set(python_kernels.__all__)
    assert all(getattr(chosen, name) is getattr(compiled, name) for name in compiled_names)


@needs_compiler
def test_loops_of_another_source_are_told(tmp_path):
    source = Path(chosen.__file__).with_name("_kernels.c")
    assert chosen.is_built_of(compiled, source)
    assert chosen.is_built_of(compiled, tmp_path / "none.c")
    (tmp_path / "newer.c").write_bytes(source.read_bytes() + b"\n")
    assert not chosen.is_built_of(compiled, tmp_path / "newer.c")
    assert not chosen.is_built_of(ModuleType("of_long_ago"), source)


@needs_compiler
def test_counters_beyond_64_bits_are_an_overflow():
    big = (2**64,) * 7
    with pytest.raises(OverflowError):
        compiled.core_rates(big, big, 1, COLUMNS)
    assert python_kernels.core_rates(big, big, 1, COLUMNS)[0] == 0


@both
def test_files_that_processes_have_open_are_counted_where_linux_tells(kernels):
    mine, gone = os.getpid(), 2**22 + 1
    before = kernels.descriptor_counts("/proc", [mine, gone])
    with open(os.devnull):
        after = kernels.descriptor_counts("/proc", [mine, gone])
    assert before[1] == after[1] == -1
    assert after[0] - before[0] == (1 if before[0] else 0)
    assert kernels.descriptor_counts("/nowhere", [mine]) == [-1]
