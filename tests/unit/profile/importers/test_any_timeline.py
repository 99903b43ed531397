"""Any timeline of an imported trace comes back from Perfetto and Chrome as it was: a property."""

from __future__ import annotations

import json
from types import MappingProxyType

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from neuron_tools.profile.export import export_chrome, export_perfetto
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.reader import open_profile
from tests.fixtures.synthetic_profile import MemoryProfile, table
from tests.fixtures.timelines import timeline_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=3,
)
SPAN = st.tuples(
    st.integers(0, 2),  # track
    st.integers(0, 60),  # start
    st.integers(0, 30),  # duration
    TEXTS,
    st.none() | TEXTS,  # category
    st.none() | st.tuples(TEXTS.filter(lambda text: text.strip(":") == text), st.integers(1, 1 << 30)),
    st.dictionaries(TEXTS.filter(lambda key: key != "source"), VALUES, max_size=3),
)
EPOCH = 4_000_000_000_123_456_789


def profile_of(spans, shift):
    """A profile with the spans on three tracks, one of them a thread, one below another."""
    return MemoryProfile(
        {
            "ProcessInfo": table("ProcessInfo", process_idx=[0], process_id=[77], name=["python"]),
            "TraceTrack": table(
                "TraceTrack",
                track_idx=[0, 1, 2],
                process_idx=[0, 0, 0],
                name=["main", "device", "stream 7"],
                kind=["thread", "other", "stream"],
                parent_track_idx=[None, None, 1],
                thread_id=[77, None, 7],
            ),
            "TraceSpan": table(
                "TraceSpan",
                id=list(range(len(spans))),
                start_ts=[span[1] + shift for span in spans],
                end_ts=[span[1] + span[2] + shift for span in spans],
                duration_ns=[span[2] for span in spans],
                process_idx=[0] * len(spans),
                track_idx=[span[0] for span in spans],
                name=[span[3] for span in spans],
                category=[span[4] for span in spans],
                source_file=[span[5] and span[5][0] for span in spans],
                source_line=pa.array([span[5] and span[5][1] for span in spans], pa.int32()),
                arguments_json=[json.dumps(span[6]) if span[6] else None for span in spans],
            ),
        }
    )


@pytest.mark.parametrize("export", [export_perfetto, export_chrome])
def test_any_timeline_survives_a_round_trip(export, tmp_path):
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(SPAN, min_size=1, max_size=8))
    @example([(0, 0, 1, "limits", None, None, {"least": -(2**63), "greatest": 2**63 - 1})])
    def check(spans):
        spans[0] = (spans[0][0], 0, *spans[0][2:])  # the first event is where imported times begin
        export(profile_of(spans, shift=0), tmp_path / "trace", force=True)
        import_traces([tmp_path / "trace"], tmp_path / "back.nprof", force=True)
        with open_profile(tmp_path / "back.nprof") as back:
            assert timeline_of(back).spans == timeline_of(profile_of(spans, shift=0)).spans

    check()


def test_nanoseconds_of_absolute_times_are_kept(tmp_path):
    spans = [
        (0, 0, 1, "a", None, None, MappingProxyType({})),
        (0, 3, 2, "b", None, None, MappingProxyType({})),
    ]
    for export in (export_perfetto, export_chrome):
        export(profile_of(spans, shift=EPOCH), tmp_path / "trace", force=True)
        import_traces([tmp_path / "trace"], tmp_path / "back.nprof", force=True)
        with open_profile(tmp_path / "back.nprof") as back:
            times = back.query("SELECT start_ts, end_ts FROM TraceSpan ORDER BY 1").to_pylist()
        assert [(row["start_ts"], row["end_ts"]) for row in times] == [(0, 1), (3, 5)]
