import pytest

from neuron_tools.profile.reader import open_profile
from tests.unit.neuron_explorer.timeline.small_profile import write_small_profile


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """An open small profile."""
    path = write_small_profile(tmp_path_factory.mktemp("timeline") / "small.nprof")
    with open_profile(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def places(profile):
    """Places of the tracks by the end of their ids."""
    return {track.id.partition("core0/")[2]: place for place, track in enumerate(profile.tracks())}
