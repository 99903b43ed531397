"""A profile opens on a typical step; the strip of steps leads to each of them, and to all."""

from __future__ import annotations

import pytest

from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary
from neuron_explorer.steps import opening_address, step_of, step_strip, typical_step
from tests.unit.neuron_profile.analysis.time.test_steps import host_spans, spans_of


@pytest.fixture
def opened(make_profile):
    tables = {"HostSpan": host_spans(spans_of([900, 100, 104, 98, 101]))}
    with ProfileLibrary([make_profile(tables=tables)]) as library:
        yield library.entries()[0].id, Analyses(library)


def test_a_profile_opens_on_a_typical_step_unless_asked_otherwise(opened):
    profile, analyses = opened
    first = opening_address(Address.parse("/overview", f"?profile={profile}"), analyses)
    assert first.end_ns - first.start_ns in (100, 101)
    for search in (
        f"?profile={profile}&scope=all",
        f"?profile={profile}&start_ns=1&end_ns=2",
        "?profile=other",
    ):
        asked = Address.parse("/overview", search)
        assert opening_address(asked, analyses) == asked


def test_the_strip_marks_what_is_shown_and_says_so(opened):
    profile, analyses = opened
    whole = str(step_strip(Address.parse("/source", f"?profile={profile}&scope=all&file=a.py"), analyses))
    assert "all of the profile" in whole
    assert whole.count("aria-current") == 1
    assert "file=a.py" in whole
    chosen = opening_address(Address.parse("/overview", f"?profile={profile}"), analyses)
    shown = str(step_strip(chosen, analyses))
    assert "typical step" in shown
    assert shown.count("aria-current") == 1
    assert shown.count("className='step ") == 6
    always_whole = str(step_strip(chosen, analyses, is_always_whole=True))
    assert "all of the profile" in always_whole
    assert "typical step" not in always_whole
    assert step_strip(Address.parse("/overview", "?profile=other"), analyses) == []


def test_a_step_is_named_for_what_is_compared(opened):
    profile, analyses = opened
    typical = typical_step(profile, analyses)
    assert typical is not None
    assert step_of(Address.parse("/timeline", f"?profile={profile}"), analyses) == typical
    strip = str(step_strip(Address.parse("/timeline", f"?profile={profile}"), analyses))
    assert "steps-cells" in strip
    assert typical_step("other", analyses) is None
