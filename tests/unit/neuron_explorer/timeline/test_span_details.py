"""What is known of one span."""

from neuron_explorer.timeline.span_details import span_details
from neuron_tools.profile.reader import open_profile
from tests.unit.profile.builders import columns, level


def test_an_operation_of_the_framework_belongs_to_no_hlo_operation(make_profile):
    hlo = level("HloInstruction", 0, 10, 1)
    tables = {
        "HloInstruction": columns([hlo]),
        "FrameworkInstruction": columns([level("FrameworkInstruction", 0, 10, 1)]),
    }
    with open_profile(make_profile(tables=tables)) as profile:
        tracks = {track.level: track for track in profile.tracks()}
        belongs = {
            each: [one["by"] for one in span_details(profile, tracks[each], 0, 0)["belongs"]]
            for each in ("framework", "hlo")
        }
    assert belongs["framework"][0] == "raw_framework_id"
    assert belongs["hlo"][:2] == ["raw_hlo_id", "raw_framework_id"]
