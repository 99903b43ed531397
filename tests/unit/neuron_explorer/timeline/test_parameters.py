"""Parameters from a request: what fits is read, everything else is refused in a sentence."""

import contextlib

import pytest
from hypothesis import given, strategies as st

from neuron_explorer.timeline.parameters import BUCKETS, ParameterError, Parameters, TileRange


def test_tiles_have_powers_of_two():
    tiles = Parameters({"level": "3", "tile": "-2", "tiles": "4"}).tile_range()
    assert tiles == TileRange(3, -2, 4)
    assert tiles.start_ns == -2 * BUCKETS * 8
    assert tiles.end_ns - tiles.start_ns == 4 * BUCKETS * 8


@pytest.mark.parametrize(
    "given_parameters",
    [
        {},
        {"level": "53", "tile": "0"},
        {"level": "-1", "tile": "0"},
        {"level": "1.5", "tile": "0"},
        {"level": "1", "tile": "0", "tiles": "17"},
        {"level": "1", "tile": "9" * 30},
        {"level": "1", "tile": "٣"},
        {"level": "40", "tile": str(1 << 40)},
    ],
)
def test_tiles_that_make_no_sense_are_refused(given_parameters):
    with pytest.raises(ParameterError):
        Parameters(given_parameters).tile_range()


def test_tracks_are_listed_as_ranges():
    assert Parameters({"tracks": "7,1-3,2"}).places("tracks", 8) == [1, 2, 3, 7]


@pytest.mark.parametrize("text", ["", "8", "1-", "-1", "a", "1-99", "1;2", "1" * 12])
def test_tracks_that_are_not_there_are_refused(text):
    with pytest.raises(ParameterError):
        Parameters({"tracks": text}).places("tracks", 8)


@given(
    st.dictionaries(
        st.sampled_from(["level", "tile", "tiles", "tracks", "start", "end"]), st.text(max_size=30)
    )
)
def test_any_text_is_read_or_refused(given_parameters):
    parameters = Parameters(given_parameters)
    for read in (
        parameters.tile_range,
        lambda: parameters.places("tracks", 9),
        lambda: parameters.time_range(0),
    ):
        with contextlib.suppress(ParameterError):  # anything else would be shown as a fault of the server
            read()


def test_empty_ranges_are_refused():
    assert Parameters({"start": "5", "end": "9"}).time_range(100) == (105, 109)
    with pytest.raises(ParameterError):
        Parameters({"start": "5", "end": "5"}).time_range(0)


def test_the_tiles_of_a_range_are_those_that_the_engine_asks_for():
    assert TileRange.around(2_355_600_000, 2_357_940_000, 1300) == TileRange(11, 1123, 2)


@given(st.integers(0, 10**12), st.integers(1, 10**10), st.integers(1024, 8000))
def test_a_narrow_timeline_asks_for_all_that_a_wide_one_does(begin_ns, length_ns, pixels):
    narrow = TileRange.around(begin_ns, begin_ns + length_ns, 1024)
    wide = TileRange.around(begin_ns, begin_ns + length_ns, pixels)
    assert narrow.start_ns <= wide.start_ns <= begin_ns
    assert begin_ns + length_ns <= wide.end_ns <= narrow.end_ns
