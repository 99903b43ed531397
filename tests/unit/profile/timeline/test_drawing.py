"""The compiled drawing shows what NumPy's does, and folded depths what their spans tell."""

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from neuron_tools import open_profile
from neuron_tools.profile.reader import TimelineError
from neuron_tools.profile.timeline import drawing
from neuron_tools.profile.timeline.drawing import ALL_DEPTHS, DRAW_KERNEL
from neuron_tools.profile.timeline.pixels import pixel_edges
from tests.unit.profile.timeline.traces import serial_spans, write_spans


def overlapping_spans(seed, count):
    """Spans of three tracks that enclose and overlap each other, some of no duration, some that last."""
    random = np.random.default_rng(seed)
    start = np.sort(random.integers(0, 40 * count, count))
    duration = random.integers(0, 120, count) * (random.random(count) < 0.9)
    duration += (random.random(count) < 0.01) * random.integers(0, 20_000, count)
    return start, duration, random.integers(0, 3, count)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """A few spans, and enough for several levels of windows."""
    folder = tmp_path_factory.mktemp("drawing")
    opened = []
    for seed, count in ((0, 300), (1, 60_000)):
        start, duration, track = overlapping_spans(seed, count)
        opened.append(open_profile(write_spans(folder / f"{count}.nprof", start, duration, track=track)))
    serial = serial_spans(5, 40_000)
    opened.append(open_profile(write_spans(folder / "serial.nprof", *serial)))
    yield opened
    for profile in opened:
        profile.close()


def both_ways(profile, start, end, pixels, deepest):
    """The same drawing by NumPy and compiled."""
    index = profile.timeline_index._index
    drawer, edges, tracks = index._drawer, pixel_edges(start, end, pixels), range(len(profile.tracks()))
    DRAW_KERNEL.wait()
    compiled = drawer.draw(tracks, edges, deepest)
    module, DRAW_KERNEL._module = DRAW_KERNEL._module, None
    try:
        return drawer.draw(tracks, edges, deepest), compiled
    finally:
        DRAW_KERNEL._module = module


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_compiled_and_plain_drawing_agree(profiles, data):
    profile = profiles[data.draw(st.integers(0, 2))]
    first, last = profile.time_range_ns()
    start = data.draw(st.integers(first - 50, last + 50))
    end = data.draw(st.one_of(st.integers(start + 1, start + 3000), st.integers(start + 1, last + 5000)))
    pixels = data.draw(st.sampled_from([1, 3, 64, 500]))
    deepest = data.draw(st.sampled_from([0, 1, 2, int(ALL_DEPTHS)]))
    plain, compiled = both_ways(profile, start, end, pixels, deepest)
    for kind, one, other in zip(drawing.KINDS, plain, compiled, strict=True):
        assert one.dtype == other.dtype == np.dtype(kind)
        if kind == "f4":
            np.testing.assert_allclose(one, other, atol=1e-6)
        else:
            np.testing.assert_array_equal(one, other)


def test_drawings_that_do_not_fit_at_once_are_joined(profiles, monkeypatch):
    monkeypatch.setattr(drawing, "MOST_ROWS", 300)
    plain, compiled = both_ways(profiles[0], 0, 12_000, 99, int(ALL_DEPTHS))
    assert len(plain[0]) > 200
    for one, other in zip(plain[:4], compiled[:4], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("depths", [0, 1, 3])
def test_deeper_spans_fold_into_one_row(profiles, depths):
    profile = profiles[0]
    wanted = {}
    for row in profile.timelines(pixels=40).to_pylist():
        place = row["track"], min(row["depth"], depths), row["pixel"]
        count, busy, longest = wanted.get(place, (0, 0.0, 0))
        kept = max(busy, row["busy_share"]), max(longest, row["span_duration_ns"])
        wanted[place] = (count + row["count"], *kept)
    folded = profile.timelines(pixels=40, depths=depths).to_pylist()
    found = {(row["track"], row["depth"], row["pixel"]): row for row in folded}
    assert len(found) == len(folded)
    assert found.keys() == wanted.keys()
    for place, row in found.items():
        assert (row["count"], row["busy_share"], row["span_duration_ns"]) == wanted[place]


def test_times_relative_to_the_range_need_no_long_integers(profiles):
    profile = profiles[2]
    start = profile.time_range_ns()[0] + 5000
    exact = profile.timelines(None, start, start + 9000, 300)
    near = profile.timelines(None, start, start + 9000, 300, relative=True)
    assert str(near.schema.field("span_start_ns").type) == "float"
    offset = exact.column("span_start_ns").to_numpy() - start
    np.testing.assert_array_equal(near.column("span_start_ns").to_numpy(), offset.astype("f4"))
    assert near.column("span_row").equals(exact.column("span_row"))
    assert near.schema.metadata[b"start_ns"] == str(start).encode()


def test_a_negative_number_of_depths_is_refused(profiles):
    with pytest.raises(TimelineError, match="none or more"):
        profiles[0].timelines(depths=-1)


@pytest.mark.parametrize("damaged", ["anywhere", "in its tables"])
def test_a_damaged_index_is_drawn_or_built_anew(profiles, tmp_path, damaged):
    random = np.random.default_rng(0)
    DRAW_KERNEL.wait()
    source = profiles[1].path
    for _ in range(25):
        copy = shutil.copytree(source, tmp_path / "damaged.nprof", dirs_exist_ok=True)
        path = copy / "timeline" / "index.bin"
        content = np.frombuffer(path.read_bytes(), np.uint8).copy()
        first = 0 if damaged == "anywhere" else max(len(content) - 40_000, 0)
        content[random.integers(first, len(content), 50)] = random.integers(0, 256, 50)
        path.write_bytes(content.tobytes())
        with open_profile(copy) as profile:
            tracks = len(profile.tracks())
            for end in (2_000, 200_000, 2_400_000):
                drawn = profile.timelines(None, 0, end, 100)
                assert set(drawn.column("track").to_pylist()) <= set(range(tracks))
                assert set(drawn.column("pixel").to_pylist()) <= set(range(100))
